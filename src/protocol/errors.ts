import { type Refusal, refusalText } from "./refusals.ts";

/**
 * The closed set of errors with which the service answers (API-6). A code has one status; places that answer with another
 * one (`property.not_found`, `type.not_found` in a body) pass it explicitly.
 */
interface ErrorRule {
  readonly status: number;
  /** Default display-safe message. */
  readonly message: string;
  /** Keys that `details` may carry. */
  readonly details?: readonly string[];
}

const rule = (status: number, message: string, details?: readonly string[]): ErrorRule => ({
  status,
  message,
  ...(details ? { details } : {}),
});

export const ERROR_RULES = {
  "request.bad_json": rule(400, "The request body is not valid JSON"),
  "request.schema": rule(400, "The request does not match the endpoint's schema", ["path", "expected", "field"]),
  "request.missing_field": rule(400, "A required field is absent", ["field"]),
  "request.unknown_field": rule(400, "The request has fields this endpoint does not accept", ["fields", "accepted"]),
  "request.invalid_field": rule(400, "A field's value is refused", ["field", "reason", "limitBytes", "spaceType"]),
  "request.not_found": rule(404, "There is no such route; GET /v1/openapi.json describes those there are", ["path"]),
  "request.method_not_allowed": rule(405, "This route does not take that method", ["method", "allowed"]),
  "request.too_large": rule(413, "The request body is too large", ["limitBytes", "limit"]),
  "request.unsupported_media_type": rule(415, "Send the body as application/json", ["got"]),
  "request.forbidden_host": rule(403, "The Host header does not name this server", ["host"]),
  "request.forbidden_origin": rule(
    403,
    "Requests from this origin are refused; http.allowedOrigins lists those allowed",
    ["origin"],
  ),
  "auth.required": rule(401, "No account is open; POST /v1/auth creates, restores or selects one"),
  "auth.already_authorized": rule(409, "An account is already open; restart the server to use another one"),
  "auth.bad_mnemonic": rule(400, "The mnemonic is not a valid 12-word BIP-39 phrase"),
  "auth.mnemonic_mismatch": rule(409, "The wallet on disk belongs to another phrase or index"),
  "auth.account_not_found": rule(404, "No local wallet has this account id", ["accountId"]),
  "auth.account_in_use": rule(409, "Another process serves this account", ["accountId"]),
  "auth.passkey_required": rule(400, "The wallet is encrypted; give its passkey"),
  "auth.passkey_wrong": rule(400, "The passkey does not open the wallet"),
  "acl.forbidden": rule(403, "Your role in this space does not allow this", ["spaceId", "role", "reason"]),
  "space.not_found": rule(404, "No space has this id; GET /v1/spaces?status=all lists those of the account", [
    "spaceId",
  ]),
  "space.exists": rule(409, "The space exists already", ["spaceId"]),
  "space.not_joined": rule(409, "This needs membership of the space", ["spaceId"]),
  "space.not_accepted": rule(409, "The space is not materialized here: its join or invite is not accepted yet", [
    "spaceId",
    "status",
  ]),
  "space.deleted": rule(409, "The space has ended for this account", ["spaceId"]),
  "space.derived_unknown": rule(404, "No derived space has this name", ["name"]),
  "space.derived_undeletable": rule(409, "Derived spaces and objects are permanent", ["spaceId", "objectId"]),
  "space.not_invite_pending": rule(409, "The space is not waiting for an invite to be answered", ["spaceId", "status"]),
  "space.read_only": rule(403, "Your role in this space does not allow writing", ["spaceId", "role"]),
  "invite.invalid": rule(400, "The invite token is malformed or not recognized"),
  "invite.not_found": rule(404, "Unknown invite", ["recordId"]),
  "guest_key.not_found": rule(404, "The space has no guest key", ["spaceId"]),
  "identity.not_found": rule(404, "Nobody known here has this identity", ["identity"]),
  "object.not_found": rule(404, "The object is unknown or deleted", ["objectId"]),
  "object.id_required": rule(
    400,
    "The object id is a serialized nil, such as null or undefined made into text; send the id itself",
    ["field", "got"],
  ),
  "object.type_required": rule(400, "The create does not bind this type", ["typeId"]),
  "bundle.not_found": rule(404, "Unknown bundle", ["bundleId"]),
  "bundle.not_ready": rule(409, "The bundle registry has not converged or its root is not here yet; retry", [
    "bundleId",
  ]),
  "bundle.loser_not_ready": rule(409, "The losing root is not synced or was seen too recently; retry", [
    "bundleId",
    "rootId",
  ]),
  "bundle.not_loser": rule(409, "This root is the winner or was never claimed", ["bundleId", "rootId"]),
  "dataset.unknown": rule(400, "No such dataset", ["dataset"]),
  "dataset.validation": rule(400, "The dataset refuses the change", [
    "dataset",
    "reason",
    "recordIndex",
    "opIndex",
    "path",
  ]),
  "dataset.name_conflict": rule(409, "The name is already used in this space", ["name"]),
  "dataset.decl_invalid": rule(400, "The dataset declaration is malformed", ["reason", "path"]),
  "dataset.immutable": rule(400, "This part of the definition never changes", ["path"]),
  "upsert.requires_user_ids": rule(
    400,
    "The dataset is not declared with idRule user; write it with POST /v1/spaces/:spaceId/modify",
    ["dataset"],
  ),
  "filter.unknown_operator": rule(400, "The filter uses an operator outside the grammar", ["operator", "path"]),
  "filter.invalid": rule(400, "The filter is not valid", ["path", "reason"]),
  "filter.too_complex": rule(400, "The filter passes a limit", ["limit", "path"]),
  "search.too_complex": rule(400, "The search passes a limit", ["limit"]),
  "aggregate.bad_pipeline": rule(400, "The pipeline is not valid", ["stage", "path", "reason"]),
  "aggregate.limit_exceeded": rule(400, "A stage passed its bound", ["limit"]),
  "type.not_found": rule(404, "No type of this space has this id or key; GET /v1/spaces/:spaceId/types lists them", [
    "typeId",
  ]),
  "type.xkey_required": rule(400, "A type needs an xKey"),
  "type.xkey_conflict": rule(409, "The xKey is taken", ["xKey", "existingTypeId", "existingPropId"]),
  "type.registered": rule(400, "Built-in types are fixed", ["typeId"]),
  "property.not_found": rule(404, "Unknown property", ["propId", "typeId"]),
  "property.kind_mismatch": rule(400, "The value is not of the property's kind", ["propId", "kind", "reason"]),
  "property.immutable": rule(400, "This part of the property never changes", ["path"]),
  "property.format_invalid": rule(400, "The format declaration is not valid", ["path", "reason"]),
  "property.format_violation": rule(400, "The value violates the property's format", ["propId", "format", "reason"]),
  "chat.text_required": rule(400, "A message needs text or attachments"),
  "chat.agent_invalid": rule(400, "The agent group is malformed", ["field", "reason"]),
  "chat.not_author": rule(403, "Only its author changes a message", ["messageId"]),
  "chat.not_found": rule(404, "Unknown message", ["messageId"]),
  "markdown.no_match": rule(400, "oldText is not in the document", ["editIndex"]),
  "markdown.ambiguous_match": rule(400, "oldText occurs more than once; make it longer or set replaceAll", [
    "editIndex",
    "occurrences",
  ]),
  "markdown.overlapping_edits": rule(400, "Two edits touch the same text", ["editIndices"]),
  "history.version_not_found": rule(404, "This version is not in the object's history", ["version"]),
  "history.view_too_large": rule(413, "The view is too large; narrow it with dataset or recordId", ["limit"]),
  "history.truncated": rule(404, "The history before this version is not kept", ["version"]),
  "file.not_found": rule(404, "Unknown file", ["fileId", "objectId"]),
  "file.not_durable": rule(409, "The local bytes are the only copy", ["fileId"]),
  "file.not_available": rule(409, "The content is not here and cannot be fetched yet; retry", ["fileId"]),
  "file.variant_invalid": rule(400, "variant and variantOf go together, on one object", ["reason"]),
  "file.range_not_satisfiable": rule(416, "The range lies outside the file", ["size"]),
  "storage.full": rule(
    507,
    "The disk of this device is full; nothing was kept. Make room, for files with POST /v1/files/cache/free, and retry",
  ),
  "storage.damaged": rule(
    507,
    "A file of this device's data directory is damaged; the log names it. Put back a copy of it. A space's file can also be " +
      "moved away while the server is stopped: what other devices or the network have of the space comes back",
  ),
  "storage.read_only": rule(
    507,
    "A file of this device's data directory cannot be opened or written; the log names it. Mend its rights, and retry",
  ),
  "storage.version": rule(
    507,
    "A file of this device's data directory was written by another version of svc; the log names both. Use that version",
  ),
  "storage.failed": rule(
    507,
    "The disk of this device reports an error; nothing was kept. Look at the disk, and retry",
  ),
  "device.not_found": rule(404, "Unknown or pruned device", ["peerId"]),
  "device.self_delete": rule(400, "A device does not prune itself", ["peerId"]),
  "device.pruned": rule(409, "This device was pruned; it needs fresh keys from a new init", ["peerId"]),
  "push.disabled": rule(409, "No push node is configured"),
  "events.payload_too_large": rule(400, "data is larger than 64 KiB", ["limitBytes"]),
  "events.no_read_key": rule(409, "The space has no read key here, so the event cannot be sealed", ["spaceId"]),
  "events.too_many_patterns": rule(409, "The space's budget of patterns is used up", ["spaceId", "limit"]),
  "events.topic_not_owned": rule(403, "The type maps into another account's own topics", ["type", "target"]),
  "process.not_found": rule(404, "No such process is live", ["processId"]),
  "process.ambiguous": rule(409, "Several publishers run a process with this id; name one with identity", [
    "identities",
  ]),
  "trigger.not_found": rule(404, "Unknown trigger; GET /triggers lists them", ["triggerId"]),
  "run.not_found": rule(404, "Unknown run; the last 50 of a trigger are kept", ["runId"]),
  "run.not_running": rule(409, "The run is over, or runs on another device", ["runId"]),
  "run.not_replayable": rule(409, "The run cannot be replayed", ["runId", "reason"]),
  "program.not_found": rule(404, "Unknown program; GET /programs lists them", ["name", "version"]),
  "runtime.disabled": rule(409, "The runtime is turned off (runtime.enabled)"),
  "index.disabled": rule(409, "The search index is turned off"),
  "index.no_embedder": rule(400, "Vector search needs an embedder"),
  "index.embedder_unavailable": rule(503, "The embedder cannot be reached; retry"),
  "search.bad_mode": rule(400, "mode is hybrid, fts or vector", ["mode"]),
  "search.bad_scope": rule(400, "A scope is 1 to 64 characters of a-z, 0-9, _ and -", ["scope"]),
  "network.disabled": rule(409, "No network is configured (network.url)"),
  "network.unavailable": rule(503, "The network cannot be reached; retry"),
  "network.forbidden": rule(403, "The network's credentials do not allow this"),
  "stream.not_found": rule(404, "No such stream is open; POST /v1/streams opens one", ["streamId"]),
  "sdk.not_implemented": rule(501, "This is not offered"),
  "sdk.not_found": rule(404, "The target is unknown or gone", [
    "objectId",
    "typeId",
    "propId",
    "defId",
    "fieldId",
    "blockId",
  ]),
  "server.unavailable": rule(503, "The request was cancelled or the server is shutting down"),
  internal: rule(500, "Something failed inside the server; its log has the details"),
} as const satisfies Record<string, ErrorRule>;

export type ErrorCode = keyof typeof ERROR_RULES;
export type ErrorDetails = Record<string, unknown>;

/** Codes that occur only inside `rejections[]` of an upsert, never as an HTTP error (DATA-3). */
const UPSERT_REJECTION_CODES = [
  "upsert.immutable_field",
  "upsert.not_author",
  "upsert.record_deleted",
  "upsert.rejected",
] as const;
export type UpsertRejectionCode = (typeof UPSERT_REJECTION_CODES)[number];

/** The one error type the domain throws. `message` is display-safe; `cause` holds what only the log may see. */
export class SvcError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: ErrorDetails | undefined;
  /** The reason, as code and facts, where a rule from the table of refusals is the reason; the message words it. */
  readonly refusal: Refusal | undefined;

  constructor(
    code: ErrorCode,
    options: {
      message?: string;
      details?: ErrorDetails | undefined;
      /** Details that are refusals; they are worded, as the message is. */
      said?: Readonly<Record<string, Refusal>>;
      refusal?: Refusal;
      status?: number;
      cause?: unknown;
    } = {},
  ) {
    const { status, message } = ERROR_RULES[code];
    super(
      options.message ?? (options.refusal ? refusalText(options.refusal) : message),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.status = options.status ?? status;
    this.details = options.said ? { ...options.details, ...textsOf(options.said) } : options.details;
    this.refusal = options.refusal;
  }

  toBody(): ErrorBody {
    return { error: { code: this.code, message: this.message, ...(this.details ? { details: this.details } : {}) } };
  }
}

const textsOf = (said: Readonly<Record<string, Refusal>>): Record<string, string> =>
  Object.fromEntries(Object.entries(said).map(([name, why]) => [name, refusalText(why)]));

export interface ErrorBody {
  error: { code: ErrorCode; message: string; details?: ErrorDetails };
}

/** Shorthand for the common throw: `throw svcError("space.not_found", { spaceId })`. */
export function svcError(code: ErrorCode, details?: ErrorDetails, message?: string): SvcError {
  return new SvcError(code, { ...(details ? { details } : {}), ...(message ? { message } : {}) });
}

/**
 * Makes an error whose reason is a refusal, in code and facts; the message words the refusal, and each that is `said` beside
 * it stands in the details under its name.
 */
export function refusedAs(
  code: ErrorCode,
  details: ErrorDetails | undefined,
  why: Refusal,
  said?: Readonly<Record<string, Refusal>>,
): SvcError {
  return new SvcError(code, { details, refusal: why, ...(said ? { said } : {}) });
}

/** How a message names the refused part of the request. */
const PART_MESSAGES = {
  reason: (_part: string, reason: string) => reason,
  colon: (part: string, reason: string) => `${part}: ${reason}`,
  plain: (part: string, reason: string) => `${part} ${reason}`,
  must: (part: string, reason: string) => `${part} must be ${reason}`,
  is: (part: string, reason: string) => `${part} is ${reason}`,
  refused: (part: string, reason: string) => `${part} is refused: ${reason}`,
  it: (part: string, reason: string) => `The field ${part} is refused: it ${reason}`,
  field: (part: string, reason: string) => `The field ${part} is refused: ${reason}`,
  long: (part: string, reason: string) => `The field ${part} is too long: ${reason}`,
  takes: (part: string, reason: string) => `${part} is refused: it takes ${reason}`,
  block: (_part: string, reason: string) => `The block is refused: ${reason}`,
  filter: (part: string, reason: string) => `The filter is not valid${part === "" ? "" : ` at ${part}`}: ${reason}`,
  pipeline: (part: string, reason: string) => `The pipeline is not valid at ${part}: ${reason}`,
} as const;

/**
 * Makes the error for a refused part of the request, which `details` names under its `field` or `path`; `details.reason`
 * words why, and the message ends with the remedy.
 */
export function refusedPart(
  code: ErrorCode,
  part: ErrorDetails & ({ readonly field: string } | { readonly path: string }),
  why: Refusal,
  how: keyof typeof PART_MESSAGES,
  remedy?: Refusal,
): SvcError {
  const reason = refusalText(why);
  const name = String("field" in part ? part["field"] : part["path"]);
  const message = PART_MESSAGES[how](name, reason) + (remedy ? `; ${refusalText(remedy)}` : "");
  return new SvcError(code, { details: { ...part, reason }, message, refusal: why });
}

/** Makes the error for a write that the rules of its dataset refuse. */
export function validationFault(where: { readonly dataset: string; readonly path?: string }, why: Refusal): SvcError {
  return refusedAs("dataset.validation", where, why, { reason: why });
}
