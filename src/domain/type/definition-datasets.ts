/** Names of the datasets on a type object that hold what the type declares. */
export const PROPERTIES_DATASET = "properties";
export const DATASET_DEFS_DATASET = "dataset_defs";
export const DATASET_FIELDS_DATASET = "dataset_fields";
export const VERSIONS_DATASET = "definition_versions";

/** The marker in `svc.types` of the row of an object that is a type. */
export const TYPE_MARKER = "__type__";
