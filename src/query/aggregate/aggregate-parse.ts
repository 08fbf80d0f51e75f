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

type StageParser = (operand: Json, where: PipelinePath) => StageAction;

class PipelineParser {
  readonly #options: FilterOptions;
  readonly #scope: ExpressionScope = createExpressionScope();
  readonly #parsers: ReadonlyMap<string, StageParser>;
  #stages = 0;
  #fields = 0;

  constructor(options: FilterOptions) {
    this.#options = options;
    this.#parsers = new Map<string, StageParser>([
      ["$match", (operand, where) => this.#parseMatch(operand, where)],
      ["$sort", parseSortStage],
      ["$skip", (operand, where) => ({ kind: "skip", count: wholeNumber(operand, 0, where) })],
      ["$limit", (operand, where) => ({ kind: "limit", count: wholeNumber(operand, 1, where) })],
      ["$count", parseCount],
      ["$project", (operand, where) => this.#parseProject(operand, where)],
      ["$addFields", (operand, where) => this.#parseAddFields(operand, where)],
      ["$set", (operand, where) => this.#parseAddFields(operand, where)],
      ["$unwind", parseUnwind],
      ["$group", (operand, where) => this.#parseGroup(operand, where)],
      ["$facet", (operand, where) => this.#parseFacet(operand, where)],
      ["$lookup", parseLookup],
    ]);
  }

  get expressions(): number {
    return this.#scope.nodes();
  }

  parseStages(input: readonly unknown[], where: PipelinePath, inFacet: boolean): Stage[] {
    return input.map((entry, index) => {
      const at = below(where, index);
      if (++this.#stages > LIMITS.pipelineStages) throw badPipeline(at, refusal("pipeline.stages"));
      if (!isJsonObject(entry)) throw badPipeline(at, refusal("pipeline.stage"));
      const [name, ...others] = Object.keys(entry);
      if (name === undefined || others.length > 0) throw badPipeline(at, refusal("pipeline.one_key"));
      const stageAt: PipelinePath = { stage: name, path: joinPath(at.path, name) };
      const parser = this.#parsers.get(name);
      if (!parser) throw badPipeline(stageAt, refusal("pipeline.no_stage", { stages: [...this.#parsers.keys()] }));
      if (inFacet && name === "$facet") throw badPipeline(stageAt, refusal("stage.facet_in_facet"));
      return { ...parser(entry[name] as Json, stageAt), text: shorten(JSON.stringify(entry)) };
    });
  }

  #parseMatch(operand: Json, where: PipelinePath): StageAction {
    if (!isJsonObject(operand)) throw badPipeline(where, refusal("stage.filter"));
    const conditions: Evaluate[] = [];
    const plain = this.#takeExpressions(operand, where, conditions, 1);
    try {
      return { kind: "match", filter: parseFilter(plain, this.#options), conditions };
    } catch (error) {
      if (!(error instanceof SvcError && error.refusal)) throw error;
      const at = joinPath(where.path, String(error.details?.["path"] ?? ""));
      if (error.code === "filter.unknown_operator") throw badPipeline({ stage: where.stage, path: at }, error.refusal);
      const { code, details, message, refusal: why } = error;
      throw new SvcError(code, { details: { ...details, path: at }, message, refusal: why });
    }
  }

  /** The filter without its `$expr` conditions, which stand at its top or inside `$and`. */
  #takeExpressions(filter: JsonObject, where: PipelinePath, into: Evaluate[], depth: number): JsonObject {
    const plain: JsonObject = {};
    for (const [key, value] of Object.entries(filter)) {
      const at = below(where, key);
      if (key === "$expr") into.push(this.#scope.parse(value, at).evaluate);
      else if (key === "$and" && Array.isArray(value) && depth < LIMITS.filterDepth)
        plain[key] = value.map((part, index) =>
          isJsonObject(part) ? this.#takeExpressions(part, below(at, index), into, depth + 1) : part,
        );
      else Object.defineProperty(plain, key, { value, enumerable: true, configurable: true, writable: true });
    }
    return plain;
  }

  #parseProject(operand: Json, where: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, where, refusal("stage.project"));
    const before = this.#scope.composites();
    const fields = entries.map(([name, value]): OutputField => {
      const at = below(where, name);
      checkOutputName(name, at);
      if (value === 0 || value === false) throw badPipeline(at, refusal("stage.exclusion"));
      if (typeof value === "number" || value === true) return this.#field(name, `$${name}`, at);
      refuseNestedFlags(value, at);
      return this.#field(name, value, at);
    });
    return { kind: "project", fields, mayGrow: this.#mayGrow(fields, before) };
  }

  #parseAddFields(operand: Json, where: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, where, refusal("stage.set"));
    const before = this.#scope.composites();
    const fields = entries.map(([name, value]) => {
      const at = below(where, name);
      return this.#field(checkOutputName(name, at), value, at);
    });
    return { kind: "addFields", fields, mayGrow: this.#mayGrow(fields, before) };
  }

  #field(name: string, value: Json, where: PipelinePath): OutputField {
    return { name, evaluate: this.#scope.parse(value, where).evaluate };
  }

  #mayGrow(fields: readonly OutputField[], compositesBefore: number): boolean {
    this.#fields += fields.length;
    return this.#fields > FEW_FIELDS || this.#scope.composites() > compositesBefore;
  }

  #parseGroup(operand: Json, where: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, where, refusal("stage.group"));
    const keys = entries.filter(([name]) => name === "_id" || name === "id");
    const [key] = keys;
    if (!key || keys.length > 1) throw badPipeline(where, refusal("stage.group_key"));
    const fields = entries
      .filter((entry) => entry !== key)
      .map(([name, value]) => this.#parseGroupField(name, value, below(where, name)));
    return { kind: "group", key: this.#scope.parse(key[1], below(where, key[0])), fields };
  }

  #parseGroupField(name: string, value: Json, where: PipelinePath): GroupField {
    checkOutputName(name, where);
    const [only, ...others] = isJsonObject(value) ? Object.entries(value) : [];
    if (!only || others.length > 0)
      throw badPipeline(where, refusal("stage.accumulators", { names: ACCUMULATOR_NAMES }));
    const [operator, operand] = only;
    const at = below(where, operator);
    const accumulator = ACCUMULATOR_NAMES.find((candidate) => candidate === operator);
    if (!accumulator) throw badPipeline(at, refusal("stage.no_accumulator", { names: ACCUMULATOR_NAMES }));
    if (accumulator === "$count" && !(isJsonObject(operand) && Object.keys(operand).length === 0))
      throw badPipeline(at, refusal("stage.empty_object"));
    return { name, accumulator, operand: this.#scope.parse(operand, at) };
  }

  #parseFacet(operand: Json, where: PipelinePath): StageAction {
    const entries = nonEmptyObject(operand, where, refusal("stage.facets"));
    const branches = entries.map(([name, stages]): FacetBranch => {
      const at = below(where, name);
      checkOutputName(name, at);
      if (!Array.isArray(stages)) throw badPipeline(at, refusal("stage.facet"));
      return { name, stages: this.parseStages(stages, at, true) };
    });
    return { kind: "facet", branches };
  }
}

function parseSortStage(operand: Json, where: PipelinePath): StageAction {
  const entries = nonEmptyObject(operand, where, refusal("stage.sort"));
  if (entries.length > LIMITS.sortKeys) throw badPipeline(where, refusal("stage.sort_paths"));
  const keys = entries.map(([path, direction]): SortKey => {
    if (direction !== 1 && direction !== -1) throw badPipeline(below(where, path), refusal("stage.direction"));
    if (path === "") throw badPipeline(where, refusal("stage.path_empty"));
    return { path: toFieldPath(path), descending: direction === -1 };
  });
  return { kind: "sort", keys };
}

function wholeNumber(operand: Json, least: number, where: PipelinePath): number {
  if (typeof operand !== "number" || !Number.isSafeInteger(operand) || operand < least)
    throw badPipeline(where, refusal("stage.integer", { least }));
  return operand;
}

function parseCount(operand: Json, where: PipelinePath): StageAction {
  if (typeof operand !== "string") throw badPipeline(where, refusal("stage.count"));
  return { kind: "count", name: checkOutputName(operand, where) };
}

function parseUnwind(operand: Json, where: PipelinePath): StageAction {
  const named: JsonObject = isJsonObject(operand) ? operand : { path: operand };
  for (const key of Object.keys(named))
    if (key !== "path" && key !== "preserveNullAndEmptyArrays")
      throw badPipeline(below(where, key), refusal("stage.unwind_option"));
  const { path, preserveNullAndEmptyArrays: preserve = false } = named as {
    path?: Json;
    preserveNullAndEmptyArrays?: Json;
  };
  if (typeof path !== "string" || !/^\$[^$.][^.]*(?:\.[^$.][^.]*)*$/.test(path))
    throw badPipeline(isJsonObject(operand) ? below(where, "path") : where, refusal("stage.unwind_path"));
  if (typeof preserve !== "boolean")
    throw badPipeline(below(where, "preserveNullAndEmptyArrays"), refusal("stage.boolean"));
  return { kind: "unwind", path: toFieldPath(path.slice(1)), preserve };
}

function parseLookup(operand: Json, where: PipelinePath): StageAction {
  const named = Object.fromEntries(nonEmptyObject(operand, where, refusal("stage.lookup")));
  for (const key of Object.keys(named))
    if (!["localField", "foreignField", "as"].includes(key))
      throw badPipeline(below(where, key), refusal("stage.lookup_option"));
  const { localField, foreignField, as } = named;
  if (typeof localField !== "string" || localField === "" || localField.startsWith("$"))
    throw badPipeline(below(where, "localField"), refusal("stage.lookup_local"));
  if (foreignField !== "id") throw badPipeline(below(where, "foreignField"), refusal("stage.lookup_foreign"));
  if (typeof as !== "string") throw badPipeline(below(where, "as"), refusal("stage.lookup_as"));
  return { kind: "lookup", localField, as: checkOutputName(as, below(where, "as")) };
}

function nonEmptyObject(operand: Json, where: PipelinePath, takes: Refusal): [string, Json][] {
  const entries = isJsonObject(operand) ? Object.entries(operand) : [];
  if (entries.length === 0) throw badPipeline(where, takes);
  return entries;
}

/** `{"a": {"b": 1}}` could mean to keep `a.b` or to write 1, so it is refused rather than read in one of the two ways. */
function refuseNestedFlags(value: Json, where: PipelinePath): void {
  if (!isJsonObject(value) || Object.keys(value).some((key) => key.startsWith("$"))) return;
  for (const [key, part] of Object.entries(value)) {
    const at = below(where, key);
    if (typeof part === "number" || typeof part === "boolean") throw badPipeline(at, refusal("stage.nested_flag"));
    refuseNestedFlags(part, at);
  }
}
