import type { JsonObject } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import { command, group } from "./command.ts";
import { LIVE_QUERY, QUERY_FLAGS, SUBSCRIBE_FLAGS } from "./shared-flags.ts";

export const devices = group("The account's devices and which of them runs an app", {
  list: command({ summary: "List the devices and the active one of each app", route: "GET /v1/devices" }),
  register: command({
    summary: "Name this device, add or remove its apps",
    examples: ["devices register --name laptop --app agent=1.2 --remove-app old"],

    route: "PUT /v1/devices/me",
    flags: {
      name: { kind: "text", summary: "Display name of this device", field: "name" },
      app: { kind: "texts", hint: "slug[=version]", summary: "App that runs here; may be repeated" },
      "remove-app": { kind: "texts", hint: "slug", summary: "App that no longer does; may be repeated" },
    },
    file: true,
    body: ({ flags }) => appsOf(flags.app ?? [], flags["remove-app"] ?? []),
  }),
  activate: command({
    summary: "Make this device the one that runs an app",
    route: "POST /v1/devices/activate",
    args: { app: { summary: "Slug of the app", field: "app" } },
  }),
  remove: command({
    summary: "Prune a device for good; it can never come back under its peer id",
    route: "DELETE /v1/devices/:peerId",
    confirm: true,
  }),
  query: command({
    summary: "Query the device rows as they are stored",
    examples: ['devices query --filter \'{"os":"linux"}\''],

    route: "POST /v1/devices/query",
    flags: QUERY_FLAGS,
    file: true,
  }),
  subscribe: command({
    summary: "Watch the device rows",
    examples: ["devices subscribe --sort name --limit 20"],

    route: "POST /v1/devices/query/subscribe",
    flags: SUBSCRIBE_FLAGS,
    ...LIVE_QUERY,
  }),
});

/** `slug=version` sets the app with its version, `slug` alone without one; a removed slug becomes null. */
function appsOf(added: readonly string[], removed: readonly string[]): JsonObject {
  const apps = added.map((text): [string, JsonObject | null] => {
    const at = text.indexOf("=");
    return at < 0 ? [text, {}] : [text.slice(0, at), { version: text.slice(at + 1) }];
  });
  for (const slug of removed) {
    if (apps.some(([name]) => name === slug)) throw new UsageError(`${slug} is both added and removed`);
    apps.push([slug, null]);
  }
  return apps.length === 0 ? {} : { apps: Object.fromEntries(apps) };
}
