import { LIMITS } from "./limits.ts";

interface Name {
  name: string;
}

interface Deed {
  /** The account that did it; without its name, which it chose itself. */
  by: string;
  at: string;
}

/**
 * Wordings of whole answers: the request says nothing wrong, but does not fit what is there, or leaves out what it has to say. They
 * belong to the one table of `refusals.ts`.
 */
export const STATE_WORDS = {
  // What a request leaves out
  "type.no_xkey": "A type needs an xKey: a stable key, unique in the space",
  "property.no_xkey": "A derived property needs an xKey",
  "property.no_kind": "A property without a format needs a kind",
  "patch.empty": "Give at least one path in set or unset",
  "device.empty_update": "Give a name or apps; an empty update says nothing",
  "window.no_sort": "A window of limit records needs sort to say which ones",
  "event.no_space": "The scope space needs a spaceId",
  "process.no_error": "A failed process needs an error: {code?, message}",
  "invite.no_role": "An open invite says which role it gives",
  "history.no_version": "The query parameter version is required",
  "message.no_text": "An edited message needs text; delete it to take it back",

  // What is not there
  "property.unknown": "The property is unknown or removed",
  "property.unknown_key": ({ propId }: { propId: string }) =>
    `${JSON.stringify(propId)} is no property of this type; values are keyed by propId`,
  "definition.unknown": "The definition is unknown or removed",
  "definition.unknown_field": "The field is unknown or removed",
  "dataset.unnamed": ({ name }: Name) =>
    `No dataset is named ${JSON.stringify(name)}; GET /v1/spaces/:spaceId/datasets lists them`,
  "type.unknown_at": ({ path, name }: Name & { path: string }) =>
    `${path}: ${JSON.stringify(name)} is no type of this space; values stand at <typeId>.<propId>`,
  "type.unknown_initial": ({ name }: Name) => `initialProperties.${name} names no type`,
  "type.unknown_carried": ({ name }: Name) =>
    `types names ${JSON.stringify(name)}, which is no type of this space that objects carry`,
  "object.unknown": "The object is unknown or deleted",
  "object.no_files": "The object is unknown or holds no files",
  "object.no_files_yet": "The object has no files: none was attached yet",
  "block.unknown": "The block is unknown or deleted",
  "file.no_variant": ({ variant }: { variant: string | undefined }) =>
    `The file has no variant ${JSON.stringify(variant)}`,
  "process.not_live": "No such process is live; start it, or start it again",
  "history.no_such_version": "This version is not in the object's history; GET …/history lists its versions",
  "edits.no_match": ({ index }: { index: number }) =>
    `edits[${index}].oldText is not in the document; read it again and copy the text exactly`,

  // What is there already, or stays
  "type.xkey_taken": ({ xKey }: { xKey: string }) => `The xKey ${xKey} is another type's key or id`,
  "property.xkey_taken": ({ xKey }: { xKey: string }) => `Another property of this type has the xKey ${xKey}`,
  "dataset.name_taken": ({ name }: Name) => `The name ${name} is used by another dataset of this space`,
  "dataset.pinned": ({ path, leaves }: { path: string; leaves: readonly string[] }) =>
    `${path} never changes; what can: ${leaves.join(", ")}. Declare another dataset for another shape`,
  "object.type_not_listed": ({ name }: Name) => `initialProperties.${name} needs the type in types`,
  "object.types_stay": "Types are not deleted: what was written under them stays",
  "object.other_type": "The object does not carry this type; types are bound when it is created",
  "property.mixed_scopes": "All values of one write share a scope: write synced, account and local ones apart",
  "property.derived": ({ propId }: { propId: string }) => `${propId} is set by the server`,
  "property.counted": ({ propId }: { propId: string }) =>
    `${propId} is counted by the server; the chat's read routes lower it`,
  "objects.queried_apart": "The objects collection is read with POST /v1/spaces/:spaceId/objects/query",
  "edits.ambiguous": ({ index, times }: { index: number; times: number }) =>
    `edits[${index}].oldText occurs ${times} times; make it longer or set replaceAll`,
  "edits.overlap": ({ first, second }: { first: number; second: number }) =>
    `edits[${first}] and edits[${second}] touch the same text; make them one edit`,
  "event.foreign_topic": ({ type }: { type: string }) =>
    `${type} is each account's own; the target names another account`,
  "event.patterns": `A space takes ${LIMITS.patternsPerSpace} patterns of event types; close streams or use wider patterns such as x.*`,

  // What is too large
  "write.too_large": "The write does not fit into one change, split it into smaller ones",
  "grants.too_many": "These accounts do not fit into one ACL record, send them in several requests",
  "metadata.too_large": ({ bytes, limitBytes }: { bytes: number; limitBytes: number }) =>
    `metadata is ${bytes} bytes, shorten it to ${limitBytes}`,
  "history.records": `The answer holds more than ${LIMITS.historyViewRecords} records; narrow it with dataset or recordId`,
  "history.bytes": `The answer holds more than ${LIMITS.historyViewBytes >> 20} MiB; narrow it with dataset or recordId`,

  // What has not come, or keeps changing
  "space.no_read_key": "The space has no read key here yet; retry",
  "space.key_changes": "The key of the space changes too fast; retry",
  "space.not_here": "The space has not come here yet; retry",
  "file.key_not_here": "The key that the file was sealed under has not arrived yet; retry",
  "file.other_bytes": "The file's row names bytes that are not what it says they are",
  "search.took_long":
    "The search took too long and was ended: search for fewer words and shorter phrases, or try again",
  "search.lost_twice": "The process that searches ended, and ended again when it was begun anew: try again",
  "file.spoilt": "What was stored as this file does not open: whoever attached it has to attach it again",

  // Spaces that are not what the request takes them for
  "space.no_pair": "This is no one-to-one space",
  "space.accepted": "The space was accepted; delete it instead",
  "space.not_joining": "No request to join this space waits",
  "space.deleted_by": ({ by, at }: Deed) => `${by} deleted the space for everybody at ${at}`,
  "space.unshared_by": ({ by, at }: Deed) => `${by} stopped sharing the space at ${at}`,
  "space.removed_by": ({ by, at }: Deed) => `${by} removed this account from the space at ${at}`,
  "space.left": ({ at }: { at: string }) => `This account left the space at ${at}`,
} as const;
