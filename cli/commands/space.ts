import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import { command, group } from "./command.ts";
import { LIVE_QUERY, PROFILE_FLAGS, QUERY_FLAGS, SUBSCRIBE_FLAGS } from "./shared-flags.ts";

const COLLECTION_FLAG = {
  dataset: { kind: "text", hint: "spaces|profile", summary: "Which rows (default spaces)", field: "dataset" },
} as const;

export const space = group("Spaces", {
  get: command({ summary: "Show a space", route: "GET /v1/spaces/:spaceId" }),
  update: command({
    summary: "Change a space's name, description or icon; an empty value clears",
    examples: ['space update <spaceId> --name "Reading list"', "space update <spaceId> --description="],

    route: "PATCH /v1/spaces/:spaceId",
    flags: PROFILE_FLAGS,
    file: true,
  }),
  settings: command({
    summary: "Change the account's own settings for a space",
    examples: ["space settings <spaceId> --set notifyMode=mentions --set-bool pinned=true --unset color"],

    route: "PATCH /v1/spaces/:spaceId/settings",
    flags: {
      set: { kind: "texts", hint: "key=text", summary: "Set a text, such as notifyMode=mentions; may be repeated" },
      "set-bool": { kind: "texts", hint: "key=true|false", summary: "Set a boolean; may be repeated" },
      "set-num": { kind: "texts", hint: "key=number", summary: "Set a number; may be repeated" },
      unset: { kind: "texts", hint: "key", summary: "Remove a setting; may be repeated", field: "unset" },
    },
    file: true,
    body: ({ flags }) =>
      settingsOf([
        ...(flags.set ?? []).map((text) => assignment("--set", text, (value) => value)),
        ...(flags["set-bool"] ?? []).map((text) => assignment("--set-bool", text, booleanOf)),
        ...(flags["set-num"] ?? []).map((text) => assignment("--set-num", text, numberOf)),
      ]),
  }),
  delete: command({
    summary: "Delete a space, or leave one that is not yours",
    route: "DELETE /v1/spaces/:spaceId",
    confirm: true,
  }),
  sync: command({
    summary: "Force one round of synchronisation and wait for it",
    route: "POST /v1/spaces/:spaceId/sync",
  }),
  derived: group(
    "List the derived spaces, or create one",
    {
      create: command({
        summary: "Create a derived space, or show it if it is there",
        route: "POST /v1/spaces/derived/:name",
      }),
    },
    command({ summary: "List the derived spaces", route: "GET /v1/spaces/derived" }),
  ),
  query: command({
    summary: "Query the space rows as they are stored",
    examples: ['space query --filter \'{"status":"active"}\' --sort name'],

    route: "POST /v1/spaces/query",
    flags: { ...COLLECTION_FLAG, ...QUERY_FLAGS },
    file: true,
  }),
  subscribe: command({
    summary: "Watch the space rows",
    examples: ["space subscribe --sort name --limit 50"],

    route: "POST /v1/spaces/query/subscribe",
    flags: { ...COLLECTION_FLAG, ...SUBSCRIBE_FLAGS },
    ...LIVE_QUERY,
  }),
});

export const datasets = command({
  summary: "List the datasets of a space with their schemas, or the account's system datasets",
  route: "GET /v1/datasets",
  args: { spaceId: { summary: "Id of the space; without it the account's own", optional: true } },
  other: { route: "GET /v1/spaces/:spaceId/datasets", when: ({ args }) => args.spaceId !== undefined },
});

function settingsOf(assignments: readonly [string, Json][]): JsonObject {
  const twice = assignments.find(([key], index) => assignments.findIndex(([other]) => other === key) !== index);
  if (twice) throw new UsageError(`the setting ${twice[0]} is set twice`);
  return assignments.length === 0 ? {} : { set: Object.fromEntries(assignments) };
}

function assignment(flag: string, text: string, read: (value: string) => Json | undefined): [string, Json] {
  const at = text.indexOf("=");
  const value = at < 1 ? undefined : read(text.slice(at + 1));
  if (value === undefined)
    throw new UsageError(`${flag} does not take ${JSON.stringify(text)}; see --help for its form`);
  return [text.slice(0, at), value];
}

const booleanOf = (text: string): boolean | undefined =>
  text === "true" ? true : text === "false" ? false : undefined;

function numberOf(text: string): number | undefined {
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) ? value : undefined;
}
