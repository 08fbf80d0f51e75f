import type { Json } from "./json.ts";
import { LIMITS } from "./limits.ts";
import { QUERY_WORDS } from "./query-words.ts";
import { REQUEST_WORDS } from "./request-words.ts";

/** What a change waits for besides other changes and records. */
const WAITED_FOR = { key: "read key", definition: "definition", version: "version" } as const;

/** Acts of owner and admins only, named as a record's ops name them. */
const MANAGERS_ACTS = {
  clock: "move the clock",
  invite: "mint invites",
  inviteRevoke: "revoke invites",
  requestAccept: "accept requests",
  requestDecline: "decline requests",
  permissionChange: "change permissions",
  accountAdd: "add accounts",
  accountRemove: "remove members",
  readKeyChange: "change the read key",
} as const;

/** Acts of the owner only. */
const OWNERS_ACTS = {
  alias: "places records of lost branches",
  sequenced: "sequences what others sign",
  ownershipChange: "transfers ownership",
  guestKey: "makes a guest key",
  guestRevoke: "revokes the guest key",
  stopSharing: "stops sharing",
  spaceDelete: "deletes the space",
} as const;

/**
 * Why the fold drops an op or a record's entry, ingest keeps out a change, the ACL log refuses a record, or a service
 * refuses a request. On every device the rules give a code and facts; words are made from them only for an answer to
 * people or for a log. This is the one table of codes.
 */
const WORDS = {
  ...REQUEST_WORDS,
  ...QUERY_WORDS,

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
  "change.malformed": ({ fault }: { fault: string }) => `it is no change: ${fault}`,
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

  // ACL records, and pending records
  "acl.managers_only": ({ act }: { act: keyof typeof MANAGERS_ACTS }) =>
    `only the owner and admins ${MANAGERS_ACTS[act]}`,
  "acl.owner_only": ({ act }: { act: keyof typeof OWNERS_ACTS }) => `only the owner ${OWNERS_ACTS[act]}`,
  "acl.space_full": `a space has at most ${LIMITS.spaceMembers} members and open invites`,
  "acl.not_next": "it does not follow the log's head",
  "acl.another_space": "it belongs to another space",
  "acl.one_to_one_fixed": "a one-to-one space takes no record after its root",
  "acl.clock_back": "its clock runs backwards",
  "acl.clock_ahead": "its clock is too far ahead",
  "acl.strangers_full": "too many records of accounts without rights came since the owner or an admin last acted",
  "acl.member_full": "the member added all to the log that it may until the owner or an admin acts",
  "acl.space_deleted": "the space is deleted",
  "acl.root_alone": "the first record is a root and nothing else",
  "acl.root_header": "the root carries another space's header",
  "acl.root_key_before": "no key comes before the first",
  "acl.root_key_holders": "the first key is not sealed to the space's author alone",
  "acl.root_again": "only the first record is a root",
  "acl.root_author": "the root is not its space's author's",
  "acl.one_invite_or_request": "a record makes one invite or request at most",
  "acl.sequenced_malformed": "what is sequenced is neither a record nor a proposal",
  "acl.sequenced_of_another_space": "what is sequenced belongs to another space",
  "acl.sequenced_root": "a root is not sequenced",
  "acl.basis_unknown": "its author knew another log",
  "acl.sequenced_nested": "what is sequenced holds its ops itself",
  "acl.took_effect": "it took effect before",
  "acl.prev_unplaced": "what it followed has no place yet",
  "acl.clock_misfit": "its clock does not fit in",
  "acl.key_stays": "somebody may no longer read, and the key stays the same",
  "acl.key_owed": "somebody may read now and is not given the key",
  "acl.invites_full": "the space has too many live invites",
  "acl.invite_not_live": "the invite is not live",
  "acl.requests_full": "too many requests are pending",
  "acl.admin_grants_admin": "an admin grants no admin",
  "acl.request_not_pending": "no such request is pending",
  "acl.request_of_another": "only who asked cancels a request",
  "acl.not_active": "the account is no active member",
  "acl.no_member": "the account is no member",
  "acl.may_not_change": "this member's permission is not the author's to change",
  "acl.may_not_remove": "this member is not the author's to remove",
  "acl.same_permission": "the member has this permission already",
  "acl.member_or_joining": "the account is a member already, or asks to be one",
  "acl.member_already": "the account is a member already",
  "acl.account_is_invite_key": "the account is the key of an invite",
  "acl.removes_itself": "nobody removes itself",
  "acl.leave_not_active": "only an active member leaves",
  "acl.leave_owner": "the owner leaves only after a transfer of ownership",
  "acl.leave_guest": "a guest key does not leave",
  "acl.derived_ownership": "a derived space stays its account's",
  "acl.owner_not_active": "ownership goes to an active member",
  "acl.owner_already": "the account is the owner already",
  "acl.guest_key_exists": "the space has a guest key",
  "acl.guest_key_absent": "the space has no guest key",
  "acl.derived_permanent": "derived spaces are permanent",
  "acl.profile_not_active": "only an active member has a profile here",
  "acl.key_used": "the key was used before",
  "acl.invite_kind": "the invite is of another kind",
  "acl.request_pending": "a request of this account is pending",
  "acl.account_key": "the account's key is not admissible",
  "acl.invite_key": "the key of the invite or guest is not admissible",
  "acl.metadata_key": "the key for what members say of themselves is not admissible",
  "acl.invite_proof": "the proof is not the invite's",
  "acl.cut_offs_missing": "it takes the right to write from an account and gives no cut-off for it",
  "acl.cut_offs_extra": "it gives a cut-off for an account that may still write",
  "acl.cut_offs_of_writers": "it does not give a cut-off for exactly those who may write",
  "acl.key_before": "the key before is not sealed under the new one",
  "acl.key_twice": "a key before is given twice",
  "acl.key_holders": "the new key is not sealed to exactly those who may read",
  "acl.key_not_owed": "nobody is owed the key",
  "acl.key_not_current": "the key is not the current one",
  "acl.key_owed_holders": "the key is not sealed to exactly those who are owed it",
  "acl.superseded": "it was decided otherwise since it was asked for",
  "acl.followed": "others follow it",
  "acl.took_effect_whole": "all of it took effect",
  "acl.no_owner": "the space has no owner",
  "acl.pending_malformed": "it is neither a record nor a proposal",
  "acl.record_malformed": "it is no ACL record",
  "acl.records_apart": "the records do not follow one another",
  "acl.split": "two branches, and no owner's record decides between them",
  "acl.branch_lost": "another branch of the log has priority",
  "acl.another_root": "it is the root of another log",
  "acl.gap": "what it follows is not here",
  "acl.pending_full": "too much waits for the space's owner already; try again once an owner's device was online",
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
