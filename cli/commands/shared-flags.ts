import type { JsonObject } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import type { FlagSpecs } from "../parse/flag-parser.ts";

/** The profile of an account or a space. On endpoints that update, an empty value clears the field. */
export const PROFILE_FLAGS = {
  name: { kind: "text", summary: "Display name", field: "name" },
  description: { kind: "text", summary: "Description", field: "description" },
  icon: { kind: "text", hint: "CID", summary: "CID of the icon", alias: "icon-cid", field: "iconCid" },
} as const satisfies FlagSpecs;

/** The same flags without a place in the body: the command puts {@link profileOf} where its endpoint expects it. */
export const PROFILE_HINT_FLAGS = {
  name: { kind: "text", summary: "Name to show until the profile itself is known" },
  description: { kind: "text", summary: "Description to show with it" },
  "icon-cid": { kind: "text", hint: "CID", summary: "CID of the icon to show with it", alias: "icon" },
} as const satisfies FlagSpecs;

/** The given fields of `{name?, description?, iconCid?}`; undefined when none was given. */
export function profileOf(flags: { name?: string; description?: string; "icon-cid"?: string }): JsonObject | undefined {
  const profile: JsonObject = {};
  if (flags.name !== undefined) profile["name"] = flags.name;
  if (flags.description !== undefined) profile["description"] = flags.description;
  if (flags["icon-cid"] !== undefined) profile["iconCid"] = flags["icon-cid"];
  return Object.keys(profile).length > 0 ? profile : undefined;
}

/** Which records, in which order, how many. */
export const QUERY_FLAGS = {
  filter: { kind: "json", summary: "Mongo-style filter object", field: "filter" },
  sort: { kind: "list", hint: "path,-path", summary: "Sort by these paths; - descends", field: "sort" },
  limit: { kind: "integer", summary: "At most so many records", field: "limit" },
  offset: { kind: "integer", summary: "Skip so many first", field: "offset" },
  total: { kind: "switch", summary: "Count all matches too", field: "includeTotal" },
} as const satisfies FlagSpecs;

/** A live query: the same window, and how much its stream may hold back. */
export const SUBSCRIBE_FLAGS = {
  ...QUERY_FLAGS,
  limit: { kind: "integer", summary: "At most so many records; required with --sort", field: "limit" },
  "mailbox-capacity": {
    kind: "integer",
    summary: "Frames held for a slow reader before the stream closes with overflow",
    field: "mailboxCapacity",
  },
  "drift-budget": {
    kind: "integer",
    hint: "percent",
    summary: "Share of the window that may leave unreplaced before the stream closes with drifted",
    field: "driftBudgetPercent",
  },
} as const satisfies FlagSpecs;

/** What all live queries share besides route and flags. A window without a limit is refused before any request. */
export const LIVE_QUERY = {
  file: true,
  stream: true,
  body({ flags }: { flags: { sort?: string[]; limit?: number; file?: string } }): JsonObject {
    if (flags.sort && flags.limit === undefined && flags.file === undefined)
      throw new UsageError("--sort needs --limit on a live query: only a limited window is kept in order");
    return {};
  },
} as const;

/** Changes single leaves of a definition or a block. */
export const PATCH_FLAGS = {
  set: { kind: "json", summary: "Object of dotted paths and their new values", field: "set" },
  unset: { kind: "texts", hint: "path", summary: "Path to remove; may be repeated", field: "unset" },
} as const satisfies FlagSpecs;
