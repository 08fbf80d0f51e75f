import { Type } from "@sinclair/typebox";
import { type JsonText, jsonText } from "../reply/reply.ts";
import { openRoute, type Route } from "../route.ts";

/** The route that describes all routes, including itself. The mobile build omits it and answers 404. */
export function openApiRoute(others: readonly Route[], path = "/v1/openapi.json"): Route {
  let text: string | undefined;
  const route: Route = openRoute({
    method: "GET",
    path,
    id: "getOpenApi",
    tag: "Meta",
    summary: "This description",
    description:
      "OpenAPI 3.1, generated from the routes: the authoritative list of strict endpoints. 404 on the mobile build.",
    responses: { 200: { description: "The document", schema: Type.Object({ openapi: Type.Literal("3.1.0") }) } },
    handler: async (): Promise<JsonText> => {
      // What writes it is loaded with the first request for it: a start does without.
      const { buildOpenApi } = await import("../openapi/openapi-document.ts");
      text ??= JSON.stringify(buildOpenApi([...others, route]));
      return jsonText(text);
    },
  });
  return route;
}
