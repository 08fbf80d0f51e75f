import { command } from "./command.ts";

export const search = command({
  summary: 'Search a space: words are ORed, "a phrase" stands together, prefix* matches beginnings',
  route: "POST /v1/spaces/:spaceId/search",
  examples: ['search <spaceId> "two words" --scopes basic,chat --require urgent'],

  args: { query: { summary: "What to look for", field: "query" } },
  flags: {
    scopes: { kind: "list", hint: "basic,chat,props", summary: "Where to look (default everywhere)", field: "scopes" },
    limit: { kind: "integer", summary: "At most so many hits (default 10)", field: "limit" },
    mode: { kind: "text", hint: "hybrid|fts|vector", summary: "How to look (default hybrid)", field: "mode" },
    require: { kind: "texts", hint: "term", summary: "Term that every hit has; may be repeated", field: "require" },
    exclude: { kind: "texts", hint: "term", summary: "Term that no hit has; may be repeated", field: "exclude" },
    "max-data": { kind: "integer", summary: "Characters of text a hit shows (default 512, -1 all)", field: "maxData" },
  },
});
