import { EVENT_TYPE_GRAMMAR, TARGET_GRAMMAR } from "./event-grammar.ts";
import { LIMITS } from "./limits.ts";

interface Named {
  /** Slug or key. */
  what: "slug" | "key";
  key: string;
}

interface Path {
  path: string;
}

const EVERY_KEY = "A-Z, a-z, 0-9 and _ . / : -";

/**
 * Wordings for faults in a part of a request or in what a member declared; they belong to the one table of `refusals.ts`.
 */
export const REQUEST_WORDS = {
  // A value
  "value.one_of": ({ values }: { values: readonly string[] }) => `one of ${values.join(", ")}`,
  "value.must_be_one_of": ({ values }: { values: readonly string[] }) => `must be one of ${values.join(", ")}`,
  "value.string": "a string",
  "value.text_bounds": ({ limitBytes }: { limitBytes: number }) => `must be a string of 1 to ${limitBytes} bytes`,
  "value.too_long": ({ limitBytes }: { limitBytes: number }) => `at most ${limitBytes} bytes`,
  "value.boolean": "must be true or false",
  "value.empty": "must not be empty",
  "value.nothing_below": ({ kind }: { kind: string }) => `there is nothing below a ${kind}`,
  "op.takes_array": ({ type }: { type: string }) => `${type} takes an array`,

  "patch.contradicts": "in set and unset",
  "patch.stands_twice": ({ path }: Path) => `${path} stands in set and in unset`,
  "cursor.none": "it is no cursor of a history page",
  "cursor.whence": "pass on the one of the last page",
  "dataset.beside": "it needs dataset beside it",
  "dataset.of_ids": "ids belong to a dataset",
  "objects.across": "objects are queried across the space",
  "pair.no_account": "not an account id",
  "pair.give_account": "give an account id",
  "pair.self": "self",
  "pair.somebody_else": "a one-to-one space is with somebody else",

  // A trigger, a program, a run
  "trigger.source": "the source is not supported",
  "trigger.never": "it can never fire",
  "program.name": "1 to 128 characters of A-Z, a-z, 0-9 and . _ -, the first a letter or a digit",
  "run.no_trace": "it has no trace",
  "run.trace_cut": "its trace was cut at its limit",
  "run.ended_outside": ({ status }: { status: string }) => `it ended from outside (${status})`,
  "run.program_gone": ({ program }: { program: string }) => `its program ${program} is gone`,

  // The name of a key
  "key.length": "a key has 1 to 128 characters",
  "key.dot": "a key has no dot and is not *",
  "key.dollar": "a key does not begin with $",
  "key.proto": "__proto__ is no key",
  "key.id": "id is the record's own",
  "key.reserved": "names that begin with _ are the system's",
  "key.xkey": `1 to 128 characters of ${EVERY_KEY}`,

  // A declared shape
  "shape.object": "a shape is an object with a kind",
  "shape.depth": `a shape has at most ${LIMITS.shapeDepth} levels`,
  "shape.parts": "a shape has kind, items, properties and required",
  "shape.items": "only an array has items",
  "shape.properties": "only an object has properties",
  "shape.properties_object": "an object of shapes",
  "shape.required": "only an object requires keys",
  "shape.required_array": "an array of keys",

  // A bag of texts
  "bag.object": "an object of strings",
  "bag.leaves": "set its leaves one by one",
  "bag.key": "a key of meta has no dot",

  // The format of a property, and values outside it
  "format.object": "an object with a type",
  "format.parts": "a format has type, ui, filter, options and meta",
  "format.kind": ({ type, kinds, kind }: { type: string; kinds: readonly string[]; kind: string }) =>
    `${type} goes with kind ${kinds.join(" or ")}, not ${kind}`,
  "format.type": "links, date, datetime, select or multiselect",
  "format.no_ui": ({ type }: { type: string }) => `the format ${type} has no ui`,
  "format.filter": "only links have a filter",
  "format.filter_object": "a filter is an object",
  "format.filter_whole": "the filter is set whole",
  "format.options": "only select and multiselect have options",
  "format.options_object": "an object of options by key",
  "format.option_object": "an option is an object of name, color and pos",
  "format.option_parts": "an option has name, color, pos and meta",
  "format.option_leaves": "set the leaves of an option: name, color, pos, meta.<key>",
  "format.absent": "the property has no format",
  "format.no_part": "a format has no such part",
  "format.links": "links are texts of the form svc://<objectId>",
  "format.date": "a date is a day of the calendar, YYYY-MM-DD",
  "format.date_instant": "a date is an instant at midnight UTC",
  "format.datetime": "a datetime is an RFC 3339 date-time such as 2026-01-31T09:30:00Z",
  "format.option_empty": "an option's key is not empty",
  "format.multiselect": "a multiselect holds keys of options",

  // A property
  "property.part": ({ part }: { part: string }) => `a property has no ${part}`,
  "property.name": "name must be a string",
  "property.description": "description must be a string",
  "property.xkey": "xKey is refused",
  "property.kind": "kind is unknown",
  "property.scope": "scope is unknown",
  "property.pinned": "this part of a property never changes",
  "property.nothing_below": ({ path }: Path) => `there is nothing below ${path}`,
  "property.name_stays": "name is a string and stays",
  "property.xkey_form": `xKey is 1 to 128 characters of ${EVERY_KEY}`,
  "property.no_part": "a property has no such part",

  // Values in an object's row
  "object.type_given": ({ path }: Path) => `${path} is given when a type is created, and stays`,
  "object.value_scope": ({ path, scope }: Path & { scope: string }) => `${path} is ${scope}; see the set endpoint`,
  "object.set_afterwards": "set it afterwards",
  "object.nav_type": ({ item, folder }: { item: string | number; folder: string | number }) =>
    `${item} is an item, ${folder} a folder`,
  "property.one_scope": ({ propId, scope, others }: { propId: string; scope: string; others: string }) =>
    `${propId} is ${scope}, others are ${others}`,
  "property.is_counted": "counted by the server",
  "notify_mode.unset": "null removes it",
  "object.private_property": "the property is private to a device or an account",
  "object.without_type": "the object does not carry the type",
  "object.no_property": ({ path }: Path) => `${path}: the type has no such property, or it was removed`,
  "object.type_not_carried": ({ path }: Path) =>
    `${path}: the object does not carry this type; types are bound when it is created`,

  // The content of a change
  "body.name": ({ limitChars }: { limitChars: number }) =>
    `a name is longer than ${limitChars} characters, or no well-formed text`,
  "body.records": ({ limit }: { limit: number }) => `more than ${limit} records`,
  "body.ops": ({ limit }: { limit: number }) => `more than ${limit} ops`,
  "body.depth": ({ limit }: { limit: number }) => `a value is nested more than ${limit} levels deep`,
  "body.traces": `more than ${LIMITS.traceIds} trace ids`,
  "body.trace_chars": `a trace id longer than ${LIMITS.traceIdChars} characters`,
  "body.traced_records": "more trace ids than its records can keep",
  "body.opened": `more than ${LIMITS.openedChangeBytes} bytes of JSON`,

  // The definition of a dataset, as its records state it
  "definition.part": ({ part }: { part: string }) => `a definition has no ${part}`,
  "definition.name": "the name is outside its grammar",
  "definition.displayed": "what is displayed is a text",
  "definition.id_rule": "idRule is unknown",
  "definition.id_pattern": "idPattern is refused",
  "definition.id_max_len": "idMaxLen is refused",
  "definition.delete_by": "deleteBy is unknown",
  "definition.flags": "dynamic and skipHistory are true or absent",
  "definition.search": "search is an object",
  "definition.field_part": ({ part }: { part: string }) => `a field has no ${part}`,
  "definition.field_def": "a field names its definition",
  "definition.field_key": "the key is refused",
  "definition.field_kind": "kind is unknown",
  "definition.field_shape": "shape is refused",
  "definition.field_scope": "scope is unknown",
  "definition.field_mutable_by": "mutableBy is unknown",
  "definition.field_required": "required is true or absent",
  "definition.field_stamp": "stamp is unknown",
  "definition.field_derived": "stamped fields, and only they, are derived",
  "definition.field_stamp_kind": "the stamp has another kind",
  "definition.nothing_below": ({ path }: Path) => `there is nothing below ${path}`,
  "definition.leaf_string": ({ path }: Path) => `${path} is a string`,
  "definition.part_pinned": "this part of a definition never changes",
  "definition.search_leaves": "search is set leaf by leaf",
  "definition.search_below": "there is nothing below",
  "definition.search_title": "title is a field's key",
  "definition.search_text": "text is a field's key or a list of different keys",
  "definition.search_scope": "scope is 1 to 64 characters of a-z, 0-9, _ and -",
  "definition.search_parts": "search has title, text and scope",
  "definition.merged": "its definition, as it was merged, is refused",
  "definition.older_key": "an older field has this key",
  "definition.older_stamp": "an older field has this stamp",
  "definition.older_full": "the older fields are as many as a definition holds",
  "definition.older_name": ({ id }: { id: string }) =>
    `the name belongs to an older definition, ${id}; write to this one under its id`,
  "definition.no_creator": "mutableBy author needs a creator stamp",

  // The draft of a dataset
  "draft.name": "1 to 64 characters of a-z, 0-9, _ and -, the first no -",
  "draft.name_reserved": "the name is reserved",
  "draft.id_rule_user": "goes with idRule user only",
  "draft.id_pattern": `RE2 syntax of at most ${LIMITS.idPatternChars} characters (no lookaround, no backreferences), whose instructions times idMaxLen are at most ${LIMITS.idPatternSteps}; write + rather than {1,100}, and leave the length to idMaxLen`,
  "draft.id_max_len": `an integer from 1 to ${LIMITS.recordIdChars}`,
  "draft.scope": "synced or local",
  "draft.stamped_scope": "a stamped field is derived",
  "draft.stamped_mutable": "a stamped field is the server's",
  "draft.stamped_required": "a stamped field is always there",
  "draft.required_scope": "only a synced field is required",
  "draft.required_initial": "only fields of the initial declaration are required",
  "draft.kind": "string, number, boolean, array, object or datetime",
  "draft.shape_kind": ({ kind }: { kind: string }) => `the shape says ${kind}`,
  "draft.stamp_kind": ({ stamp, kind }: { stamp: string; kind: string }) => `the stamp ${stamp} is of kind ${kind}`,
  "draft.search_scope": "1 to 64 characters of a-z, 0-9, _ and -",
  "draft.search_text": "a field's key, or a list of different keys",
  "draft.fields": `at most ${LIMITS.datasetFields} fields`,
  "draft.fields_chars": `fields take at most ${LIMITS.declarationChars} characters together`,
  "draft.key_twice": "two fields have this key",
  "draft.stamp_twice": ({ stamp }: { stamp: string }) => `two fields have the stamp ${stamp}`,
  "draft.no_creator": "author needs a field with the stamp creator",
  "draft.no_field": ({ key }: { key: string }) => `there is no field ${key}`,

  // Acts on a space's ACL
  "act.one_to_one_fixed": "A one-to-one space has its two members for ever",
  "act.managers_only": "Only the owner and admins may do this",
  "act.owners_device": "Without a network only the owner's devices extend the ACL; propose it to them",
  "act.owner_only": "Only the owner may do this",
  "act.owner_makes_admins": "Only the owner makes admins",
  "act.owner_stays": "The owner is fixed; transfer the ownership instead",
  "act.guests_stay": "Guests go with their key; revoke the guest key instead",
  "act.owner_changes_admins": "Only the owner changes or removes admins",
  "act.owner_to_another": "ownership goes to another active member",
  "act.owner_leaves": "The owner leaves after transferring ownership",
  "act.guest_leaves": "A guest is no member; delete the space here instead",
  "act.removes_itself": "Nobody removes itself; leave the space instead",
  "act.account_leaving": "the account's leaving is not complete",
  "act.no_account": "not an account id",
  "act.no_request": "no pending request has this id",
  "act.account_without_request": "This account has no pending request",
  "act.invite_gone": "The invite was revoked or replaced; ask for a new one",

  // Roles given
  "grant.open_only": "only an open invite gives a role; otherwise it is chosen when the request is accepted",
  "grant.twice": "an account is named twice",

  // A bundle
  "bundle.id_bytes": ({ limitBytes }: { limitBytes: number }) => `must have 1 to ${limitBytes} bytes`,
  "bundle.short_id": "choose a short one such as general-chat/v1",
  "bundle.name_bytes": ({ limitBytes }: { limitBytes: number }) => `must have at most ${limitBytes} bytes`,
  "bundle.shorten": "shorten it",
  "bundle.root_types": ({ limit }: { limit: number }) => `must name at most ${limit} types`,
  "bundle.own_types": "name only those that the root itself carries",
  "bundle.properties_bytes": ({ limitBytes }: { limitBytes: number }) =>
    `must have at most ${limitBytes} bytes as JSON`,
  "bundle.write_later": "write the rest to the root once the bundle is installed",
  "bundle.short_seed": "choose a short name that is the same at every call",

  // A message of a chat
  "emoji.name": "is no emoji: it has a dot, or is a name of the data language",
  "agent.object": "must be an object with name and done",
  "agent.field": "is not a field of it",
  "attachments.object": "must be an object of attachments by id",
  "attachments.count": ({ limit }: { limit: number }) => `at most ${limit} to a message`,
  "attachments.id": "an id is 1 to 64 of A-Z, a-z, 0-9, _ and -",
  "attachments.proto": "__proto__ is no id",
  "attachment.object": "must be an object with type and link",
  "attachment.field": "is not a field of an attachment",

  // An event, and a process, which events describe
  "event.type": EVENT_TYPE_GRAMMAR,
  "event.type_or_pattern": `${EVENT_TYPE_GRAMMAR}, or one followed by .*`,
  "event.target": TARGET_GRAMMAR,
  "event.topic_bytes": ({ limit }: { limit: number }) => `makes, with the target, a topic of more than ${limit} bytes`,
  "event.topic_segments": ({ limit }: { limit: number }) =>
    `makes, with the target, a topic of more than ${limit} segments`,
  "event.space_scope_alone": "belongs to the scope space alone",
  "event.space_scope_left_out": "belongs to the scope space, which scope leaves out",
  "event.values": ({ limit }: { limit: number }) => `at most ${limit} values; use a pattern such as x.*`,
  "process.amount": "must be a number of 0 or more",
  "process.failed_alone": "belongs to the status failed alone",
  "process.error_object": "must be an object {code?, message}",
  "process.error_parts": "holds nothing but code and message",
  "process.error_message": ({ limitBytes }: { limitBytes: number }) => `needs a message of 1 to ${limitBytes} bytes`,
  "process.error_code": ({ limitBytes }: { limitBytes: number }) => `takes a code of 1 to ${limitBytes} bytes`,

  // A device and its apps
  "app.object": "must be an object of strings, numbers and booleans, or null to uninstall",
  "app.value": "must be a string, a number or a boolean",
  "app.empty": ({ what, key }: Named) => `the ${what} ${JSON.stringify(key)} is empty`,
  "app.dot": ({ what, key }: Named) => `the ${what} ${JSON.stringify(key)} has a dot`,
  "app.data_name": ({ what, key }: Named) => `the ${what} ${JSON.stringify(key)} is a name of the data language`,
  "app.too_long": ({ what, key, limitBytes }: Named & { limitBytes: number }) =>
    `the ${what} ${JSON.stringify(key)} has more than ${limitBytes} bytes`,

  // A file when it is attached
  "file.name": `longer than ${LIMITS.fileNameBytes} bytes`,
  "file.variant_alone": "variant and variantOf go together",
  "file.both_or_neither": "send both, or neither",
  "file.variant_name": "a variant is named by 1 to 64 letters, digits, dots, dashes and underscores",
  "file.no_original": "there is no such file",
  "file.original_elsewhere": "the original is a file of another object",
  "file.original_variant": "the original is a variant itself; name the file that it is a variant of",

  // Edits of a document
  "edits.none": "give at least one edit",
  "edits.count": `at most ${LIMITS.markdownEdits} edits at once; send the rest in another request`,
  "edits.old_text": "must not be empty; to add text at the end use append",

  "markdown.blocks": ({ blocks, limit }: { blocks: number; limit: number }) =>
    `The text makes ${blocks} new blocks, and one request at most ${limit}: write its beginning, then append the rest in parts`,

  // A write to records
  "write.own_endpoints": "this dataset is written through its own endpoints",
  "write.type_not_carried": "the object does not carry the type that declares this dataset",
  "write.no_content": "it is a type or one of the server's own objects, which hold no content",
  "local.absent": "absent",
  "local.absent_or_false": "absent or false",
  "local.other_dataset": "another dataset than objects",
  "local.record_id": "the id of a record",
  "write.local_field": "the field is device-local, write it with scope: local",
  "write.id_empty": "a record id is empty",
  "write.id_or_upsert": "a record without an id needs upsert: true",
} as const;
