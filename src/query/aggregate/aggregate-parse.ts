/** Parses pipelines (AGG-1). A fault is aggregate.bad_pipeline with the stage, the path and the reason. */
import { refusedAs, SvcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { badPipeline, below, type PipelinePath } from "../expression/aggregate-faults.ts";
import { createExpressionScope } from "../expression/expression-parse.ts";
import type { Evaluate, ExpressionScope } from "../expression/expression-types.ts";
import { checkOutputName } from "../expression/output-field.ts";
import { joinPath, shorten } from "../filter/filter-faults.ts";
import { type FilterOptions, parseFilter } from "../filter/filter-parse.ts";
import { toFieldPath } from "../value/field-path.ts";
import type { SortKey } from "../value/sort.ts";
import { ACCUMULATOR_NAMES } from "./accumulators.ts";
import type { FacetBranch, GroupField, OutputField, Pipeline, Stage, StageAction } from "./aggregate-types.ts";

/** More fields than this in a pipeline can make a document many times larger, even if each one is a plain copy. */
const FEW_FIELDS = 8;

/**
 * Parses a pipeline.
 * @throws SvcError request.schema if it is no array; aggregate.bad_pipeline; filter.invalid and filter.too_complex
 *   inside $match
 */
export function parsePipeline(input: unknown, options: FilterOptions = {}): Pipeline {
  if (!Array.isArray(input))
    throw refusedAs("request.schema", { path: "pipeline", expected: "array" }, refusal("pipeline.array"));
  const parser = new PipelineParser(options);
  const stages = parser.parseStages(input, { stage: "", path: "pipeline" }, false);
  return { stages, expressions: parser.expressions };
}

type StageParser = (operand: Json, place: PipelinePath) => StageAction;

class PipelineParser {
  readonly #options: FilterOptions;
  readonly #scope: ExpressionScope = createExpressionScope();
  readonly #parsers: ReadonlyMap<string, StageParser>;
  #stages = 0;
  #fields = 0;

  constructor(options: FilterOptions) {
    this.#options = options;
    this.#parsers = new Map<string, StageParser>([
      ["$match", (operand, place) => this.#parseMatch(operand, place)],
      ["$sort", parseSortStage],
      ["$skip", (operand, place) => ({ kind: "skip", count: wholeNumber(operand, 0, place) })],
      ["$limit", (operand, place) => ({ kind: "limit", count: wholeNumber(operand, 1, place) })],
      ["$count", parseCount],
      ["$project", (operand, place) => this.#parseProject(operand, place)],
      ["$addFields", (operand, place) => this.#parseAddFields(operand, place)],
      ["$set", (operand, place) => this.#parseAddFields(operand, place)],
      ["$unwind", parseUnwind],
      ["$group", (operand, place) => this.#parseGroup(operand, place)],
      ["$facet", (operand, place) => this.#parseFacet(operand, place)],
      ["$lookup", parseLookup],
    ]);
  }

  get expressions(): number {
    return this.#scope.nodes();
  }

  parseStages(input: readonly unknown[], place: PipelinePath, inFacet: boolean): Stage[] {
    return input.map((entry, index) => {
      const at = below(place, index);
      if (++this.#stages > LIMITS.pipelineStages) throw badPipeline(at, refusal("pipeline.stages"));
      if (!isJsonObject(entry)) throw badPipeline(at, refusal("pipeline.stage"));
      const [name, ...others] = Object.keys(entry);
      if (name === undefined || others.length > 0) throw badPipeline(at, refusal("pipeline.one_key"));
      const stagePlace: PipelinePath = { stage: name, path: joinPath(at.path, name) };
      const parser = this.#parsers.get(name);
      if (!parser) throw badPipeline(stagePlace, refusal("pipeline.no_stage", { stages: [...this.#parsers.keys()] }));
      if (inFacet && name === "$facet") throw badPipeline(stagePlace, refusal("stage.facet_in_facet"));
      return { ...parser(entry[name] as Json, stagePlace), text: shorten(JSON.stringify(entry)) };
    });
  }

  #parseMatch(operand: Json, place: PipelinePath): StageAction {
    if (!isJsonObject(operand)) throw badPipeline(place, refusal("stage.filter"));
    const conditions: Evaluate[] = [];
    const plain = this.#takeExpressions(operand, place, conditions, 1);
    try {
      return { kind: "match", filter: parseFilter(plain, this.#options), conditions };
    } catch (error) {
      if (!(error instanceof SvcError && error.refusal)) throw error;
      const at = joinPath(place.path, String(error.details?.["path"] ?? ""));
      if (error.code === "filter.unknown_operator") throw badPipeline({ stage: place.stage, path: at }, error.refusal);
      const { code, details, message, refusal: why } = error;
      throw new SvcError(code, { details: { ...details, path: at }, message, refusal: why });
    }
  }

  /** The filter without its `$expr` conditions, which stand at its top or inside `$and`. */
  #takeExpressions(filter: JsonObject, place: PipelinePath, into: Evaluate[], depth: number): JsonObject {
    const plain: JsonObject = {};
    for (const [key, value] of Object.entries(filter)) {
      const at = below(place, key);
      if (key === "$expr") into.push(this.#scope.parse(value, at).evaluate);
      else if (key === "$and" && Array.isArray(value) && depth < LIMITS.filterDepth)
        plain[key] = value.map((part, index) =>
          isJsonObject(part) ? this.#takeExpressions(part, below(at, index), into, depth + 1) : part,
        );
      else Object.defineProperty(plain, key, { value, enumerable: true, configurable: true, writable: true });
    }
    return plain;
  }

  #parseProject(operand: Json, place: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, place, refusal("stage.project"));
    const before = this.#scope.composites();
    const fields = entries.map(([name, value]): OutputField => {
      const at = below(place, name);
      checkOutputName(name, at);
      if (value === 0 || value === false) throw badPipeline(at, refusal("stage.exclusion"));
      if (typeof value === "number" || value === true) return this.#field(name, `$${name}`, at);
      refuseNestedFlags(value, at);
      return this.#field(name, value, at);
    });
    return { kind: "project", fields, mayGrow: this.#mayGrow(fields, before) };
  }

  #parseAddFields(operand: Json, place: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, place, refusal("stage.set"));
    const before = this.#scope.composites();
    const fields = entries.map(([name, value]) => {
      const at = below(place, name);
      return this.#field(checkOutputName(name, at), value, at);
    });
    return { kind: "addFields", fields, mayGrow: this.#mayGrow(fields, before) };
  }

  #field(name: string, value: Json, place: PipelinePath): OutputField {
    return { name, evaluate: this.#scope.parse(value, place).evaluate };
  }

  #mayGrow(fields: readonly OutputField[], compositesBefore: number): boolean {
    this.#fields += fields.length;
    return this.#fields > FEW_FIELDS || this.#scope.composites() > compositesBefore;
  }

  #parseGroup(operand: Json, place: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, place, refusal("stage.group"));
    const keys = entries.filter(([name]) => name === "_id" || name === "id");
    const [key] = keys;
    if (!key || keys.length > 1) throw badPipeline(place, refusal("stage.group_key"));
    const fields = entries
      .filter((entry) => entry !== key)
      .map(([name, value]) => this.#parseGroupField(name, value, below(place, name)));
    return { kind: "group", key: this.#scope.parse(key[1], below(place, key[0])), fields };
  }

  #parseGroupField(name: string, value: Json, place: PipelinePath): GroupField {
    checkOutputName(name, place);
    const [only, ...others] = isJsonObject(value) ? Object.entries(value) : [];
    if (!only || others.length > 0)
      throw badPipeline(place, refusal("stage.accumulators", { names: ACCUMULATOR_NAMES }));
    const [operator, operand] = only;
    const at = below(place, operator);
    const accumulator = ACCUMULATOR_NAMES.find((candidate) => candidate === operator);
    if (!accumulator) throw badPipeline(at, refusal("stage.no_accumulator", { names: ACCUMULATOR_NAMES }));
    if (accumulator === "$count" && !(isJsonObject(operand) && Object.keys(operand).length === 0))
      throw badPipeline(at, refusal("stage.empty_object"));
    return { name, accumulator, operand: this.#scope.parse(operand, at) };
  }

  #parseFacet(operand: Json, place: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, place, refusal("stage.facets"));
    const branches = entries.map(([name, stages]): FacetBranch => {
      const at = below(place, name);
      checkOutputName(name, at);
      if (!Array.isArray(stages)) throw badPipeline(at, refusal("stage.facet"));
      return { name, stages: this.parseStages(stages, at, true) };
    });
    return { kind: "facet", branches };
  }
}

function parseSortStage(operand: Json, place: PipelinePath): StageAction {
  const entries = nonEmptyObject(operand, place, refusal("stage.sort"));
  if (entries.length > LIMITS.sortKeys) throw badPipeline(place, refusal("stage.sort_paths"));
  const keys = entries.map(([path, direction]): SortKey => {
    if (direction !== 1 && direction !== -1) throw badPipeline(below(place, path), refusal("stage.direction"));
    if (path === "") throw badPipeline(place, refusal("stage.path_empty"));
    return { path: toFieldPath(path), descending: direction === -1 };
  });
  return { kind: "sort", keys };
}

function wholeNumber(operand: Json, least: number, place: PipelinePath): number {
  if (typeof operand !== "number" || !Number.isSafeInteger(operand) || operand < least)
    throw badPipeline(place, refusal("stage.integer", { least }));
  return operand;
}

function parseCount(operand: Json, place: PipelinePath): StageAction {
  if (typeof operand !== "string") throw badPipeline(place, refusal("stage.count"));
  return { kind: "count", name: checkOutputName(operand, place) };
}

function parseUnwind(operand: Json, place: PipelinePath): StageAction {
  const named: JsonObject = isJsonObject(operand) ? operand : { path: operand };
  for (const key of Object.keys(named))
    if (key !== "path" && key !== "preserveNullAndEmptyArrays")
      throw badPipeline(below(place, key), refusal("stage.unwind_option"));
  const { path, preserveNullAndEmptyArrays: preserve = false } = named as {
    path?: Json;
    preserveNullAndEmptyArrays?: Json;
  };
  if (typeof path !== "string" || !/^\$[^$.][^.]*(?:\.[^$.][^.]*)*$/.test(path))
    throw badPipeline(isJsonObject(operand) ? below(place, "path") : place, refusal("stage.unwind_path"));
  if (typeof preserve !== "boolean")
    throw badPipeline(below(place, "preserveNullAndEmptyArrays"), refusal("stage.boolean"));
  return { kind: "unwind", path: toFieldPath(path.slice(1)), preserve };
}

function parseLookup(operand: Json, place: PipelinePath): StageAction {
  const named = Object.fromEntries(nonEmptyObject(operand, place, refusal("stage.lookup")));
  for (const key of Object.keys(named))
    if (!["localField", "foreignField", "as"].includes(key))
      throw badPipeline(below(place, key), refusal("stage.lookup_option"));
  const { localField, foreignField, as } = named;
  if (typeof localField !== "string" || localField === "" || localField.startsWith("$"))
    throw badPipeline(below(place, "localField"), refusal("stage.lookup_local"));
  if (foreignField !== "id") throw badPipeline(below(place, "foreignField"), refusal("stage.lookup_foreign"));
  if (typeof as !== "string") throw badPipeline(below(place, "as"), refusal("stage.lookup_as"));
  return { kind: "lookup", localField, as: checkOutputName(as, below(place, "as")) };
}

function nonEmptyObject(operand: Json, place: PipelinePath, takes: Refusal): [string, Json][] {
  const entries = isJsonObject(operand) ? Object.entries(operand) : [];
  if (entries.length === 0) throw badPipeline(place, takes);
  return entries;
}

/** `{"a": {"b": 1}}` could mean to keep `a.b` or to write 1, so it is refused rather than read in one of the two ways. */
function refuseNestedFlags(value: Json, place: PipelinePath): void {
  if (!isJsonObject(value) || Object.keys(value).some((key) => key.startsWith("$"))) return;
  for (const [key, part] of Object.entries(value)) {
    const at = below(place, key);
    if (typeof part === "number" || typeof part === "boolean") throw badPipeline(at, refusal("stage.nested_flag"));
    refuseNestedFlags(part, at);
  }
}
