import { Type } from "@sinclair/typebox";
import { CollectionQueryBody, QueryReply } from "../../protocol/record.ts";
import { named, strict } from "../../protocol/schema.ts";
import { queryReply, refuseTarget } from "../reply/query-reply.ts";
import { type Route, route } from "../route.ts";

const AppBag = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]));
const Claim = named("DeviceClaim", strict({ seq: Type.Integer(), at: Type.Number({ description: "Unix seconds" }) }));

const Device = named(
  "Device",
  strict({
    peerId: Type.String(),
    name: Type.Optional(Type.String()),
    os: Type.Optional(Type.String({ description: "linux, darwin, windows, android or ios" })),
    version: Type.Optional(Type.String()),
    apps: Type.Optional(Type.Record(Type.String(), AppBag, { description: "Presence of a slug means installed" })),
    activeClaims: Type.Optional(Type.Record(Type.String(), Claim)),
  }),
);

/** Devices of the account: a registry that all of them share. It does not say which are online. */
export const deviceRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/devices",
    id: "listDevices",
    tag: "Devices",
    summary: "The account's devices, and which of them is active for what",
    responses: {
      200: {
        description: "`active` is the outcome of the election rule, by app slug",
        schema: strict({
          devices: Type.Array(Device),
          active: Type.Optional(Type.Record(Type.String(), Type.String())),
          self: Type.String({ description: "This device's peer id" }),
        }),
      },
    },
    handler: async ({ engine }) => {
      const { devices, active, self } = engine.devices.list();
      return { devices, self, ...(Object.keys(active).length > 0 ? { active } : {}) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/devices/query",
    id: "queryDevices",
    tag: "Devices",
    summary: "Query the raw rows of devices",
    body: CollectionQueryBody,
    example: { sort: ["name"] },
    responses: { 200: { description: "The rows", schema: QueryReply } },
    errors: ["filter.invalid", "filter.unknown_operator", "filter.too_complex"],
    handler: async ({ engine, body, signal }) => {
      refuseTarget(body);
      const source = engine.techQueries.sourceOf(engine.tech.index.idText, "devices");
      return queryReply(await engine.techQueries.query(source, body, { signal }));
    },
  }),
  route({
    method: "PUT",
    path: "/v1/devices/me",
    id: "updateOwnDevice",
    tag: "Devices",
    summary: "Change this device's own row",
    description: "An empty name means unchanged. `apps: {slug: null}` uninstalls an app and forfeits its claim.",
    body: strict({
      name: Type.Optional(Type.String()),
      apps: Type.Optional(Type.Object({}, { additionalProperties: true, description: "Scalar bags by slug, or null" })),
    }),
    example: { name: "Kitchen", apps: { agent: { version: "1.2" } } },
    responses: { 204: { description: "Changed" } },
    errors: ["device.pruned", "dataset.validation", "request.too_large"],
    handler: async ({ engine, body }) => engine.devices.update(body),
  }),
  route({
    method: "POST",
    path: "/v1/devices/activate",
    id: "activateApp",
    tag: "Devices",
    summary: "Claim the active role of an app for this device",
    body: strict({ app: Type.String({ description: "Slug" }) }),
    example: { app: "agent" },
    responses: { 204: { description: "Claimed; see `active` after the next sync" } },
    errors: ["device.pruned", "dataset.validation", "request.too_large"],
    handler: async ({ engine, body }) => engine.devices.activate(body.app),
  }),
  route({
    method: "DELETE",
    path: "/v1/devices/:peerId",
    id: "removeDevice",
    tag: "Devices",
    summary: "Prune another device",
    description: "For ever: its peer id never registers again.",
    responses: { 204: { description: "Pruned" } },
    errors: ["device.not_found", "device.self_delete"],
    handler: async ({ engine, params }) => engine.devices.remove(params.peerId),
  }),
];
