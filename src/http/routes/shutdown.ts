import { openRoute, type Route } from "../route.ts";

export const shutdownRoutes: Route[] = [
  openRoute({
    method: "POST",
    path: "/v1/shutdown",
    id: "shutDown",
    tag: "Meta",
    summary: "Stop the server",
    description:
      "Answers at once. Requests in flight get up to 10 s, open streams end with `closed{reason: server_shutdown}`, the process exits 0.",
    responses: { 204: { description: "The shutdown has begun" } },
    handler: async ({ server }) => server.requestShutdown(),
  }),
];
