import type { Malformation } from "../base/malformed.ts";
import { ACCOUNT_WORDS } from "./account-words.ts";
import { ACL_WORDS } from "./acl-words.ts";
import type { Json } from "./json.ts";
import { LIMITS } from "./limits.ts";
import { NETWORK_WORDS } from "./network-words.ts";
import { QUERY_WORDS } from "./query-words.ts";
import { REQUEST_WORDS } from "./request-words.ts";
import { STATE_WORDS } from "./state-words.ts";

/** What a change waits for besides other changes and records. */
const WAITED_FOR = { key: "read key", definition: "definition", version: "version" } as const;

/** How bytes are wrong that are neither a value in its only encoding nor an envelope around one. */
const MALFORMED: Readonly<Record<Malformation, string>> = {
  bytes: "its bytes are not dag-cbor",
  truncated: "its bytes end too early",
  trailing_bytes: "bytes follow its end",
  not_canonical: "it is not in its only encoding",
  integer_too_large: "an integer is too large",
  indefinite_length: "a length is left open",
  too_deep: "its values nest too deeply",
  too_many_values: "it holds too many values",
  simple_value: "it holds a value of an unknown kind",
  map_key: "a key is no text",
  tag: "it holds an unknown tag",
  link: "a link is of an unknown kind",
  not_utf8: "a text is not UTF-8",
  no_header: "it has no header",
  other_fields: "its envelope has other fields",
  body_and_hash: "its envelope has a body and the body's hash",
  body_not_bytes: "its body is not bytes",
  hash_length: "the hash of its body has another length",
  signature_length: "its signature has another length",
};

/** What a value is named by: its path, unless it is the whole value. */
interface Of {
  where?: string;
  /** The path is that of an array to which it is added. */
  element?: true;
}

const valueNamed = ({ where, element }: Of): string =>
  where === undefined ? "the value" : element ? `an element of ${where}` : where;

const KIND_NOUNS = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  datetime: 'an instant, {"$date": "2026-01-31T09:30:00.000Z"}',
} as const;

/**
 * Why the fold drops an op or a record's entry, ingest keeps out a change, the ACL log refuses a record, or a service
 * refuses a request. On every device the rules give a code and facts; words are made from them only for an answer to
 * people or for a log. This is the one table of codes.
 */
const WORDS = {
  ...REQUEST_WORDS,
  ...QUERY_WORDS,
  ...STATE_WORDS,
  ...ACL_WORDS,
  ...ACCOUNT_WORDS,
  ...NETWORK_WORDS,

  // A write that the rules of its dataset refuse
  "write.refused": ({ dataset, path, why }: { dataset: string; path?: string; why: object }): string =>
    `The dataset ${dataset} refuses the change${path === undefined ? "" : ` at ${path}`}: ${refusalText(why as Refusal)}`,
  "local.expected": ({ path, expected }: { path: string; expected: object }): string =>
    `With scope local, ${path} must be ${refusalText(expected as Refusal)}`,
  "write.not_made": ({ dataset, why }: { dataset: string; why: object }): string =>
    `The write to ${dataset} is refused: ${refusalText(why as Refusal)}`,
  "object.takes_no_content": ({ objectId, type }: { objectId: string; type: string }): string =>
    `${objectId} takes no ${type} content: ${refusalText(refusal("write.no_content"))}`,

  "wallet.damaged": ({ why }: { why: object }): string =>
    `The wallet file is damaged: ${refusalText(why as Refusal)}. Put back a copy of it, or restore the account from its 12 words`,
  "run.not_replayed": ({ why }: { why: object }): string =>
    `The run cannot be replayed: ${refusalText(why as Refusal)}`,
  "part.refused": ({ part, why }: { part: string; why: object }): string =>
    `${part} is refused: ${refusalText(why as Refusal)}`,
  "part.remedied": ({ why, remedy }: { why: object; remedy: object }): string =>
    `${refusalText(why as Refusal)}: ${refusalText(remedy as Refusal)}`,
  "format.filter_invalid": ({ path, why }: { path: string; why: object }): string =>
    path === "" ? refusalText(why as Refusal) : `at ${path}: ${refusalText(why as Refusal)}`,

  // What is stored
  "change.unfoldable": "the change does not fold",
  "record.absent": "there is no such record",
  "record.deleted": "the record is deleted",
  "record.too_large": `the record would be larger than ${LIMITS.recordBytes} bytes of JSON`,

  // The id of a record
  "id.empty": "the id is empty",
  "id.too_long": ({ limitChars }: { limitChars: number }) => `the id is longer than ${limitChars} characters`,
  "id.pattern": ({ pattern }: { pattern: string }) => `the id does not match ${pattern}`,
  "id.record_too_long": `the record's id is longer than ${LIMITS.recordIdChars} characters`,
  "id.malformed": "the record's id is no well-formed text",
  "id.is_no": ({ what }: { what: "object" | "space" | "peer" }) => `the record's id is no ${what} id`,
  "id.is_the_objects": "the only record here is the object's own",
  "id.is_the_callers": "the caller names the records of this dataset",
  "id.is_the_servers": "the server names the records of this dataset",

  // An entry of an upsert
  "entry.dotted": "a field's name has no dots; give the object that holds it",
  "entry.other_id": "the fields name another id than the entry",

  // The path of an op
  "path.empty": "the path is empty",
  "path.too_long": ({ limitChars }: { limitChars: number }) => `the path is longer than ${limitChars} characters`,
  "path.too_deep": ({ limit }: { limit: number }) => `the path has more than ${limit} segments`,
  "path.id": "id cannot be written",
  "path.reserved": "names that begin with _ are the system's",
  "path.empty_segment": "a segment of the path is empty",
  "path.no_name": ({ segment }: { segment: string }) => `${segment} is no name of a field`,
  "path.blocked": "the path leads through a value that is no object",

  // An op and the value it meets
  "op.needs_paths": "an empty path takes $set or $unset with an object of paths",
  "op.needs_value": ({ type }: { type: string }) => `${type} needs a value`,
  "op.inc_takes_number": "$inc takes a number",
  "op.inc_needs_number": "$inc needs a number in the field",
  "op.sum_not_finite": "the sum is not a finite number",
  "op.needs_array": ({ type }: { type: string }) => `${type} needs an array in the field`,

  // Declared fields
  "field.unknown": ({ field }: { field: string }) => `${field} is no field of this dataset`,
  "field.stamped": ({ field }: { field: string }) => `${field} is set by the server`,
  "field.scope": ({ field, scope }: { field?: string; scope: string }) => `${field ?? "the field"} is ${scope}`,
  "field.not_local": "the field is not device-local",
  "field.required": ({ field }: { field: string }) => `the required field ${field} stays`,
  "field.missing": ({ field }: { field: string }) => `the required field ${field} is missing or of another kind`,
  "field.write_once":
    "the field is write-once (mutableBy: never); to change that, remove the field from its dataset and add it anew with mutableBy any or author",
  "field.set_once": "the field is set once",
  "field.text": "the field is a text",
  "record.not_author": "only the record's author may do this",
  "value.kind": ({ kind, ...of }: Of & { kind: keyof typeof KIND_NOUNS }) =>
    `${valueNamed(of)} must be ${KIND_NOUNS[kind]}`,
  "value.lacks": ({ key, ...of }: Of & { key: string }) => `${valueNamed(of)} must have ${key}`,
  "value.is_no": ({ where, kind }: { where: string; kind: string }) => `${where} is no ${kind}`,

  // Definitions
  "definition.unnamed": "the change names no definition of this dataset",
  "definition.not_whole": "a definition is created whole, by one $set",
  "definition.stays": "definitions are removed, not deleted",
  "definition.op": "definitions take $set and $unset",
  "definition.field_pinned": "a field never changes",
  "version.not_its_hash": "a version is the declaration that its id is the hash of",
  "version.of_another_type": "a version is written down on its own type",
  "version.stays": "versions stay",
  "version.pinned": "a version never changes",

  // Objects
  "object.not_author": "only its author creates an object's row",
  "object.deleted_whole": "objects are deleted as a whole",
  "object.path": "a value is written at <typeId>.<propId>",
  "deletion.of_itself": "the log of deletions stays",
  "deletion.final": "a deletion is final",
  "deletion.bare": "a deletion carries no fields",

  // Files
  "file.not_whole": "a file is created by one $set of its fields",
  "file.field": ({ field }: { field: string }) => `a file has no field ${field}`,
  "file.form": ({ field }: { field: string }) => `${field} is not of its form`,
  "file.of_another_object": "the file is of another object",
  "file.pinned": "a file's row never changes",
  "file.size": "a file has a size",
  "file.variant": "variant and variantOf go together",
  "file.in_two_places": "a file's bytes lie in its row or elsewhere",
  "file.data_size": "data has another size",
  "file.nowhere": "a file has data, or rootCid, hash and keyId",

  // Chat
  "message.not_whole": "a message is created by one $set of its fields",
  "message.empty": "a message needs text or attachments",
  "message.field": ({ field }: { field: string }) => `a message has no field ${field}`,
  "message.text": "text is a string of at most 32 KiB",
  "message.mentions": "mentions are at most 64 account ids",
  "message.reply": "replyToMessageId is a message id",
  "message.agent": ({ field, why }: { field: string; why: object }): string =>
    `The agent group is malformed: ${field} ${refusalText(why as Refusal)}`,
  "message.field_refused": ({ field, why }: { field: string; why: object }): string =>
    `The field ${field} is refused: ${refusalText(why as Refusal)}`,
  "message.mentions_derived": "mentions are derived from the text",
  "message.raw": "send or edit the message with the chat endpoints",
  "message.not_author": ({ act }: { act: "deletes" | "edits" }) => `only its author ${act} a message`,
  "message.pinned": "only the text of a message changes",
  "message.set_whole": ({ field }: { field: string }) => `${field} is set as a whole`,
  "message.emptied": "text cannot become empty",
  "message.flag": "the flag is true or absent: $set true, or $unset",
  "reaction.path": "a reaction is set or unset at reactions.<emoji>.<accountId>",
  "reaction.emoji": "an emoji has at most 64 bytes",
  "reaction.of_another": "a reaction belongs to the account it names",

  // Documents
  "block.field": "a block has type, style, text and nav",
  "block.type": ({ limitBytes }: { limitBytes: number }) => `type is a text of 1 to ${limitBytes} bytes`,
  "block.text": ({ path }: { path: string }) => `${path} is a text`,
  "block.pos": "nav.pos is a text that is not empty",
  "block.style": "style is an object",
  "block.nav": "nav is {parentId, pos}",
  "block.required": ({ path }: { path: string }) => `${path} is required`,
  "block.set": ({ path }: { path: string }) => `${path} takes $set`,

  // Bundles
  "bundle.stays": "a bundle is uninstalled by deleting its root",
  "bundle.path": "a bundle's fields are set as a whole",
  "bundle.roots": "roots grow by object ids",
  "bundle.root": "rootId is an object id",
  "bundle.name": "name is a text",
  "bundle.derived": "derived is true or absent",
  "bundle.field": "a bundle has name, rootId, roots and derived",
  "bundle.child_stays": "a child ends with its root",

  // What describes a space, an account, a device
  "metadata.one_record": "the space's metadata is one record",
  "metadata.stays": "the space's metadata is cleared field by field",
  "metadata.field": "a space has the texts name, description and iconCid",
  "profile.one_record": "the profile is one record",
  "profile.stays": "a profile is cleared field by field",
  "profile.field": "a profile has the texts name, description and iconCid",
  "profile.of_another": "one speaks of oneself",
  "device.claim": "a claim is {seq, at}",
  "device.field": "a device has name, os, version, apps.<slug> and activeClaims.<slug>",
  "space_row.stays": "a space's row ends with its status, it is never deleted",
  "space_row.local": "the field is this device's own",
  "space_row.final": "the end of a space is final",
  "space_root.stays": "a space's root stays",
  "space_root.field": "a space's root has header, aclRoot and transport",
  "secret.stays": "secrets are dropped one by one",
  "secret.field": "secrets are token, hint, asked, place, adder, invites.<key> and guests.<key>",
  "secret.text": "a secret is a text",
  "frontier.stays": "a frontier is not taken back",
  "frontier.set": "a frontier is set",
  "frontier.field": "a frontier is writers.<writer>: seq",
  "frontier.behind": "the frontier is further already",

  // A change from a peer
  "change.malformed": ({ fault }: { fault: Malformation }) => `it is no change: ${MALFORMED[fault]}`,
  "change.version": "it is of a later version",
  "change.no_version": "its version is unknown",
  "change.kind": "its kind is unknown",
  "change.fields": "its header has other fields",
  "change.no_link": ({ field }: { field: string }) => `${field} is not a link`,
  "change.length": ({ field }: { field: string }) => `${field} has another length`,
  "change.no_count": ({ field, least, most }: { field: string; least: number; most: number }) =>
    `${field} is not an integer from ${least} to ${most}`,
  "change.parents": `parents are no list of up to ${LIMITS.changeParents}`,
  "change.parents_order": "parents are not sorted",
  "change.parents_of_root": "only a root has no parents",
  "change.object_of_root": "only a root names no object",
  "change.first_of_writer": "only seq 1 has no prev",
  "change.body_of_root": "only a root has no body",
  "change.too_large": "the change is too large",
  "change.body_too_large": "the sealed body is too large",
  "change.unsigned": "the change is not signed",
  "change.derived_fields": "a derived root has other fields",
  "change.derived_too_long": "the derived root's type or derivation is too long",
  "change.another_space": "it belongs to another space",
  "change.author_key": "the author's key is not admissible",
  "change.signature": "the signature is not the author's",
  "change.parents_apart": "its parents belong to different objects",
  "change.parents_elsewhere": "its parents belong to another object",
  "change.writers_chain": "its writer's chain is broken",
  "change.lamport": ({ is, due }: { is: number; due: number }) => `its lamport is ${is}, not ${due}`,
  "change.body_key": "the body does not open under the key it names",
  "change.no_body": "the sealed bytes are no body",
  "change.follows_refused": ({ because }: { because: { code: string; facts: object } }): string =>
    `it follows a change that is refused (${refusalText(because as Refusal)})`,
  "change.follows_nothing": ({ what }: { what: string }) => `it follows ${what}, which nobody has`,
  "change.waits_in_vain": ({ kind, what }: { kind: keyof typeof WAITED_FOR; what: string }) =>
    `it waits for the ${WAITED_FOR[kind]} ${what}, which nobody has given`,
  "change.body_missing": "its content is missing, and nobody who was asked has it",
  "change.damaged": "the disk changed it: whoever has it is asked for it",
  "change.space_quota": "the space's quota of waiting changes is used up",
  "change.author_quota": "the author's quota of waiting changes is used up",
  "change.uncounted_quota": "what does not count has used up its quota",
  "change.idle_roots": "too many roots that nobody wrote to",
} as const;

export type RefusalCode = keyof typeof WORDS;

export const REFUSAL_CODES = Object.keys(WORDS) as readonly RefusalCode[];

type Facts<C extends RefusalCode> = (typeof WORDS)[C] extends (facts: infer F) => string ? [facts: F] : [];

/**
 * Why something is refused: a code for programs, and facts for the wording. `at`: the path concerned, where there are
 * several.
 */
export interface Refusal {
  readonly code: RefusalCode;
  readonly facts: { readonly [name: string]: Json | undefined };
  readonly at?: string;
}

/** Makes a refusal, to be returned. */
export function refusal<C extends RefusalCode>(code: C, ...[facts]: Facts<C>): Refusal {
  return { code, facts: (facts ?? NO_FACTS) as Refusal["facts"] };
}

const NO_FACTS = Object.freeze({});

/** Words the refusal for people. */
export function refusalText({ code, facts, at }: Refusal): string {
  const words: string | ((facts: never) => string) = WORDS[code];
  const text = typeof words === "string" ? words : words(facts as never);
  return at === undefined ? text : `${at}: ${text}`;
}
