import { Type } from "@sinclair/typebox";
import { svcError } from "../../protocol/errors.ts";
import { strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";

const REPLICAS = [1, 3, 5];

export const networkRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/network/init",
    id: "initNetwork",
    tag: "Network",
    summary: "Make the network's streams",
    description:
      "Needs credentials in `network.url` that may make them. Those that exist stay as they are, so it may be repeated.",
    body: strict({ replicas: Type.Optional(Type.Integer({ description: "1, 3 or 5; by default 3 on a cluster" })) }),
    example: { replicas: 3 },
    responses: {
      200: {
        description: "What was made, and what was there",
        schema: strict({ created: Type.Array(Type.String()), existing: Type.Array(Type.String()) }),
      },
    },
    errors: ["network.disabled", "network.unavailable", "network.forbidden"],
    handler: async ({ engine, body }) => {
      if (body.replicas !== undefined && !REPLICAS.includes(body.replicas))
        throw svcError(
          "request.invalid_field",
          { field: "replicas", reason: "1, 3 or 5" },
          "replicas must be 1, 3 or 5",
        );
      return engine.sync.initNetwork(body.replicas);
    },
  }),
];
