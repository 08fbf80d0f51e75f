import type { DatasetRules, FieldScope } from "../../change/dataset-rules.ts";
import type { RulesRegistry } from "../../change/ports.ts";
import type { JsonObject } from "../../protocol/json.ts";

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
}

/** What other features ask of a space's types, properties and dataset definitions. */
export interface SchemaPort {
  readonly registry: RulesRegistry;
  /**
   * The dataset of a name for local writes, built in or declared. Writes the definition's version record first when the
   * merged definition has none yet, so it must be called inside the write that uses it.
   */
  datasetForWrite(name: string): WritableDataset | undefined;
  /** Id of a type by its id or xKey, built in or of the space. */
  typeId(idOrXKey: string): string | undefined;
  /**
   * Checks property values of one type (gaps § 7): property.not_found (with `notFoundStatus`), property.kind_mismatch,
   * property.format_violation; a null removes and is not checked. All must share one scope, else request.invalid_field.
   */
  checkValues(typeId: string, values: JsonObject, notFoundStatus: 400 | 404): FieldScope;
  /** `datetime` where a path of a dataset is declared so (for filters). Dataset `objects` is the collection of objects. */
  declaredKind(dataset: string, path: string): "datetime" | undefined;
}
