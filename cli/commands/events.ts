import { command, group } from "./command.ts";

export const events = group("The event bus", {
  publish: command({
    summary: "Publish an event",
    examples: ["events publish --type ui.open --scope device --data '{\"tab\":1}'"],

    route: "POST /v1/events",
    flags: {
      type: { kind: "text", hint: "a.b.c", summary: "Type of the event", field: "type" },
      scope: { kind: "text", hint: "device|account|space", summary: "How far it goes", field: "scope" },
      space: { kind: "text", hint: "ID", summary: "Space, with scope space", alias: "space-id", field: "spaceId" },
      target: { kind: "text", hint: "ID", summary: "What it is about", field: "target" },
      data: { kind: "json", summary: "What it carries, at most 64 KiB", field: "data" },
    },
    file: true,
  }),
  subscribe: command({
    summary: "Watch events; each filter may be repeated",
    examples: ["events subscribe --type process.* --scope device --scope account"],

    route: "GET /v1/events/subscribe",
    flags: {
      scope: { kind: "texts", hint: "device|account|space", summary: "Only of this scope", query: "scope" },
      space: { kind: "texts", hint: "ID", summary: "Only of this space", alias: "space-id", query: "spaceId" },
      type: { kind: "texts", hint: "a.b|a.*", summary: "Only of this type, or of all below", query: "type" },
      target: { kind: "texts", hint: "ID", summary: "Only about this", query: "target" },
    },
    stream: true,
  }),
});
