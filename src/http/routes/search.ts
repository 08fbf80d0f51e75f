import { SearchBody, SearchReply } from "../../protocol/search.ts";
import { type Route, route } from "../route.ts";

/** Searches a space's content by text and by meaning, in this device's own index. */
export const searchRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/search",
    id: "search",
    tag: "Search",
    summary: "Find content of a space",
    description:
      "Looks into names and descriptions of objects, documents, messages of chats, values of properties and datasets that say " +
      "what of them is to be found. `hybrid` joins what words and what meaning find; without an embedder it does what `fts` " +
      "does, and `vectorStatus` says so.",
    body: SearchBody,
    objectIdFields: ["objectId"],
    example: { query: 'meeting notes "next week" plan*', scopes: ["basic", "chat"], limit: 5 },
    responses: { 200: { description: "What was found", schema: SearchReply } },
    errors: [
      "index.disabled",
      "index.no_embedder",
      "index.embedder_unavailable",
      "search.bad_mode",
      "search.bad_scope",
      "search.too_complex",
    ],
    handler: async ({ engine, params, body }) => engine.search.search(params.spaceId, body),
  }),
];
