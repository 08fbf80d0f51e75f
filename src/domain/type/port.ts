import type { AccountId } from "../../base/ids.ts";
import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules, FieldScope } from "../../change/codec/dataset-rules.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { Refusal } from "../../protocol/refusals.ts";

/** A dataset that can be written to now. */
export interface WritableDataset {
  rules: DatasetRules;
  /** The definition version that a change names; absent for built-in datasets. */
  definition?: string;
  /** The type that declares it: an object must carry that type. Absent: any object may hold it. */
  typeId?: string;
  /** Callers cannot write to it directly: only the server's own services do. */
  internal?: boolean;
  /** Fields that exist on this device only; what `scope: local` writes may name. */
  isLocalField?(path: string): boolean;
  /** Why a `scope: local` op on one path is refused; goes before `isLocalField`. */
  localFault?(op: RecordOp): Refusal | undefined;
  /** Checks one assignment of a caller against what only this device's view of the types can tell. Throws SvcError. */
  checkOp?(type: RecordOp["type"], path: string, value: Json | undefined, carries: (typeId: string) => boolean): void;
  /** Adds to callers' records what follows from them, so that it is written with them. `stored` is a live record. */
  complete?(
    records: RecordChange[],
    author: AccountId,
    stored: (recordId: string) => JsonObject | undefined,
  ): RecordChange[];
  /** The content of a feature that objects carry a type for: types and the server's own objects hold none. */
  content?: boolean;
}

/** What other features ask of a space's types, properties and dataset definitions. */
export interface SchemaPort {
  /**
   * The dataset of a name for local writes, built in or declared; a definition that lost its name to an older one goes
   * by its id. Writes the version's record first when the definition, as it is merged here, has none yet.
   */
  datasetForWrite(name: string, tx: WriteTx): WritableDataset | undefined;
  /** Id of a type by its id or xKey, built in or of the space. */
  typeId(idOrXKey: string): string | undefined;
  /** The same of a type that objects can carry; `svc`, `spaceIndex` and `type` are none. */
  attachableTypeId(idOrXKey: string): string | undefined;
  /**
   * Checks property values of one type (TYPE-7): property.not_found (with `notFoundStatus`), property.kind_mismatch,
   * property.format_violation; a null removes and is not checked. All must share one scope, else request.invalid_field.
   * Instants are in their canonical form already.
   */
  checkValues(typeId: string, values: JsonObject, notFoundStatus: 400 | 404): FieldScope;
  /** `datetime` where a path of a dataset is declared so (for filters). Dataset `objects` is the collection of objects. */
  declaredKind(dataset: string, path: string): "datetime" | undefined;
  /** Whether a path of a dataset is declared: a property of a type, a field of a definition, whatever a built-in dataset holds. */
  isDeclared(dataset: string, path: string): boolean;
}

export { TYPE_MARKER } from "./definition-datasets.ts";
