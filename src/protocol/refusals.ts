import type { Json } from "./json.ts";
import { LIMITS } from "./limits.ts";

/**
 * Why the fold drops an op or a record's entry. The rules, on every device, say a code and facts; words are made of them where
 * people are answered. The one table of codes.
 */
const WORDS = {
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
  "id.is_no": ({ what }: { what: string }) => `the record's id is no ${what}`,
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
  "value.kind": ({ where, is }: { where: string; is: string }) => `${where} must be ${is}`,
  "value.lacks": ({ where, key }: { where: string; key: string }) => `${where} must have ${key}`,
  "value.is_no": ({ where, kind }: { where: string; kind: string }) => `${where} is no ${kind}`,

  // Definitions
  "definition.unnamed": "the change names no definition of this dataset",
  "definition.not_whole": "a definition is created whole, by one $set",
  "definition.stays": "definitions are removed, not deleted",
  "definition.op": "definitions take $set and $unset",
  "definition.field_pinned": "a field never changes",
  "definition.invalid": ({ fault }: { fault: string }) => fault,
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
  "message.part": ({ fault }: { fault: string }) => fault,
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
} as const;

export type RefusalCode = keyof typeof WORDS;

export const REFUSAL_CODES = Object.keys(WORDS) as readonly RefusalCode[];

type Facts<C extends RefusalCode> = (typeof WORDS)[C] extends (facts: infer F) => string ? [facts: F] : [];

/** Why something is dropped: a code for programs, facts to word it with. `at`: the path it is about, where several are. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly facts: { readonly [name: string]: Json | undefined };
  readonly at?: string;
}

/** A refusal, to be answered. */
export function refusal<C extends RefusalCode>(code: C, ...[facts]: Facts<C>): Refusal {
  return { code, facts: (facts ?? NO_FACTS) as Refusal["facts"] };
}

const NO_FACTS = Object.freeze({});

/** The refusal in words, for people. */
export function refusalText({ code, facts, at }: Refusal): string {
  const words: string | ((facts: never) => string) = WORDS[code];
  const text = typeof words === "string" ? words : words(facts as never);
  return at === undefined ? text : `${at}: ${text}`;
}
