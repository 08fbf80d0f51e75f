import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import { refusedAs, refusedPart, SvcError, validationFault } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { NOTIFY_MODES, type NotifyMode } from "../../protocol/notify-mode.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { PropertyDef } from "../../protocol/type.ts";
import { BUILT_IN_DATASET_NAMES, isBuiltInInstant } from "./built-in-schemas.ts";
import { builtInProperties, isAttachable, isBuiltInType } from "./built-in-types.ts";
import { definitionName } from "./declaration.ts";
import type { Definition } from "./definition.ts";
import { VERSIONS_DATASET } from "./definition-datasets.ts";
import type { DefinitionRegistry } from "./definition-registry.ts";
import { VERSION_RULES } from "./definition-rules.ts";
import type { SchemaPort, WritableDataset } from "./port.ts";
import { checkPropertyValue, checkPropertyValues, propertyShape } from "./property-values.ts";
import { createSchemaView, type SchemaView, type SchemaViewDeps } from "./schema-view.ts";
import { kindAlong, shapeBelow, shapeFault } from "./value-kind.ts";

/** The schema of an open space: what is built in and what its types declare. */
export interface Schema extends SchemaPort {
  readonly view: SchemaView;
  /** Properties of a type, built in or of the space, by propId; undefined when there is no such type. */
  properties(typeId: string): ReadonlyMap<string, PropertyDef> | undefined;
  /** Whether a name belongs to a dataset that every space has. */
  isBuiltInDataset(name: string): boolean;
}

/** What stands at the root of an object's row. */
const OBJECT_ROOTS = new Set(["author", "createdAt", "modifiedAt", "spaceId"]);
/** Types whose values every object may have. */
const EVERY_OBJECT_HAS = new Set(["svc", "nav"]);
/** Properties of a chat that only the count of its messages moves. */
const CHAT_COUNTERS = new Set(["unreadCount", "unreadMentions", "unreadReactionsCount"]);

interface SchemaDeps extends SchemaViewDeps {
  /** The registry that the engine folds by. */
  registry: DefinitionRegistry;
  builtIns: ReadonlyMap<string, WritableDataset>;
}

export function createSchema(deps: SchemaDeps): Schema {
  const { registry, builtIns } = deps;
  const view = createSchemaView(deps);

  const properties = (typeId: string) => builtInProperties(typeId) ?? view.type(typeId)?.properties;

  const typeId = (name: string): string | undefined => {
    if (isBuiltInType(name)) return name;
    return view.type(name)?.id ?? view.typeByXKey(name)?.id;
  };

  /** Raw writes to objects' rows must obey the declared kinds, as `set` does. */
  const checkObjectOp: WritableDataset["checkOp"] = (type, path, value, carries) => {
    const [namespace, propId, ...below] = path.split(".") as [string, ...string[]];
    if (propId === undefined) return;
    const declared = properties(namespace);
    if (!declared) {
      // A value that was written while the type was unknown can still be removed.
      if (type === "$unset") return;
      const why = refusal("type.unknown_at", { path, name: namespace });
      throw new SvcError("type.not_found", { details: { typeId: namespace }, refusal: why, status: 400 });
    }
    const refuse = (why: Refusal) => validationFault({ dataset: OBJECTS_DATASET, path }, why);
    if (namespace === "type") throw refuse(refusal("object.type_given", { path }));
    const property = declared.get(propId);
    if (property && property.scope !== "synced")
      throw refuse(refusal("object.value_scope", { path, scope: property.scope }));
    if (value === undefined || type === "$unset") return;
    if (!property) throw refuse(refusal("object.no_property", { path }));
    if (!EVERY_OBJECT_HAS.has(namespace) && !carries(namespace))
      throw refuse(refusal("object.type_not_carried", { path }));
    if (type === "$set" && below.length === 0) {
      checkPropertyValue(property, value);
      return;
    }
    const shape = shapeBelow(propertyShape(property), below);
    const mismatch = (why: Refusal) => {
      const details = { propId: property.id, kind: property.kind };
      return refusedAs("property.kind_mismatch", details, { ...why, at: path }, { reason: why });
    };
    if (type === "$set") {
      const fault = shape ? shapeFault(shape, value) : undefined;
      if (fault) throw mismatch(fault);
      if (property.kind !== "object") throw mismatch(refusal("value.nothing_below", { kind: property.kind }));
    } else if (type === "$inc") {
      if (shape && shape.kind !== "number") throw mismatch(refusal("op.inc_takes_number"));
    } else {
      if (shape && shape.kind !== "array") throw mismatch(refusal("op.takes_array", { type }));
      if (type === "$addToSet" && below.length === 0) checkPropertyValue(property, [value]);
    }
  };

  const objects = builtIns.get(OBJECTS_DATASET);
  const checkedObjects: WritableDataset | undefined = objects && { ...objects, checkOp: checkObjectOp };

  const writable = (definition: Definition, tx: WriteTx): WritableDataset => {
    const { id, text } = definition.version();
    let compiled = registry.compiled(id);
    if (!compiled) {
      const records = [{ id, upsert: true, ops: [{ type: "$set" as const, path: "", value: { declaration: text } }] }];
      tx.append(tx.object(definition.typeId)!, { dataset: VERSIONS_DATASET, records }, VERSION_RULES);
      compiled = registry.compiled(id);
    }
    if (!compiled) {
      const { name } = definition.declaration;
      const said = { reason: refusal("definition.merged") };
      throw new SvcError("dataset.validation", { details: { dataset: name }, said });
    }
    return {
      rules: compiled.rules,
      definition: definitionName(definition.typeId, id),
      typeId: definition.typeId,
      localFault: compiled.localFault,
    };
  };

  const definitionOf = (dataset: string): Definition | undefined =>
    view.definitionByName(dataset) ?? view.definitionById(dataset);

  return {
    view,
    properties,
    isBuiltInDataset: (name) => builtIns.has(name) || BUILT_IN_DATASET_NAMES.has(name),
    datasetForWrite(name, tx) {
      if (name === OBJECTS_DATASET) return checkedObjects;
      const builtIn = builtIns.get(name);
      if (builtIn) return builtIn;
      const definition = definitionOf(name);
      return definition && writable(definition, tx);
    },
    typeId,
    attachableTypeId(name) {
      const id = typeId(name);
      return id !== undefined && (!isBuiltInType(id) || isAttachable(id)) ? id : undefined;
    },
    checkValues(id, values, notFoundStatus) {
      const counted = id === "chat" ? Object.keys(values).find((property) => CHAT_COUNTERS.has(property)) : undefined;
      if (counted !== undefined)
        throw refusedAs("request.invalid_field", { field: counted }, refusal("property.counted", { propId: counted }), {
          reason: refusal("property.is_counted"),
        });
      const scope = checkPropertyValues(id, properties(id) ?? new Map(), values, notFoundStatus);
      if (id === "chat") checkNotifyMode(values["notifyMode"]);
      return scope;
    },
    isDeclared(dataset, path) {
      const [head, below] = path.split(".");
      if (dataset === OBJECTS_DATASET)
        return below === undefined ? OBJECT_ROOTS.has(head!) : properties(head!)?.has(below) === true;
      if (builtIns.has(dataset)) return true;
      return definitionOf(dataset)?.declaration.fields.some((each) => each.key === head) ?? false;
    },
    declaredKind(dataset, path) {
      const [head, ...below] = path.split(".");
      if (dataset === OBJECTS_DATASET) {
        if (below.length === 0) return isBuiltInInstant(dataset, head!) ? "datetime" : undefined;
        const property = properties(head!)?.get(below[0]!);
        return property && datetimeOnly(kindAlong(propertyShape(property), below.slice(1)));
      }
      if (builtIns.has(dataset)) return isBuiltInInstant(dataset, path) ? "datetime" : undefined;
      const field = definitionOf(dataset)?.declaration.fields.find((each) => each.key === head);
      return field && datetimeOnly(kindAlong(field.shape, below));
    },
  };
}

/** Which messages of a chat this account is notified of (PUSH-1); null leaves it to the space's settings. */
function checkNotifyMode(value: Json | undefined): void {
  if (value === undefined || value === null || NOTIFY_MODES.includes(value as NotifyMode)) return;
  const why = refusal("value.must_be_one_of", { values: NOTIFY_MODES });
  throw refusedPart("request.invalid_field", { field: "notifyMode" }, why, "plain", refusal("notify_mode.unset"));
}

function datetimeOnly(kind: string | undefined): "datetime" | undefined {
  return kind === "datetime" ? kind : undefined;
}
