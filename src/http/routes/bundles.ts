import { Type } from "@sinclair/typebox";
import { named, strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";

const Bundle = named(
  "Bundle",
  strict({
    id: Type.String(),
    name: Type.Optional(Type.String()),
    rootId: Type.String({ description: "The winning install's root object" }),
    roots: Type.Optional(Type.Array(Type.String(), { description: "Every install that was ever claimed" })),
    losers: Type.Optional(Type.Array(Type.String(), { description: "Installs that lost and are not resolved yet" })),
    derived: Type.Optional(Type.Literal(true)),
  }),
);

const BUNDLES = "/v1/spaces/:spaceId/bundles";

/** Apps installed in a space; of several installations of one app, one wins. */
export const bundleRoutes: Route[] = [
  route({
    method: "POST",
    path: BUNDLES,
    id: "installBundle",
    tag: "Bundles",
    summary: "Adopt the install of a bundle, or install it",
    description: "Safe to call at every start of an app. `derived: true` gives the root the same id on every device.",
    body: strict({
      id: Type.String({ description: "Carries its own version, for example `notes/v1`" }),
      name: Type.Optional(Type.String()),
      rootTypes: Type.Optional(Type.Array(Type.String())),
      rootProperties: Type.Optional(
        Type.Record(Type.String(), Type.Object({}, { additionalProperties: true }), {
          description: "Values by type and property",
        }),
      ),
      derived: Type.Optional(Type.Boolean()),
    }),
    example: { id: "notes/v1", name: "Notes", rootTypes: ["page"] },
    responses: {
      200: {
        description: "The bundle, and whether this call installed it",
        schema: strict({ bundle: Bundle, installed: Type.Boolean() }),
      },
    },
    errors: [
      "bundle.not_ready",
      ["type.not_found", 400],
      "object.type_required",
      ["property.not_found", 400],
      "property.format_violation",
      "property.kind_mismatch",
      "dataset.validation",
      "space.read_only",
    ],
    handler: async ({ engine, params, body }) => {
      const { bundles } = await engine.space(params.spaceId);
      return bundles.ensure(body as Parameters<typeof bundles.ensure>[0]);
    },
  }),
  route({
    method: "GET",
    path: BUNDLES,
    id: "listBundles",
    tag: "Bundles",
    summary: "Installed bundles",
    responses: { 200: { description: "The bundles", schema: strict({ bundles: Type.Array(Bundle) }) } },
    handler: async ({ engine, params }) => ({ bundles: (await engine.space(params.spaceId)).bundles.list() }),
  }),
  route({
    method: "GET",
    path: `${BUNDLES}/:bundleId`,
    id: "getBundle",
    tag: "Bundles",
    summary: "One bundle",
    responses: { 200: { description: "The bundle", schema: Bundle } },
    errors: ["bundle.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).bundles.get(params.bundleId),
  }),
  route({
    method: "POST",
    path: `${BUNDLES}/:bundleId/resolve`,
    id: "resolveBundle",
    tag: "Bundles",
    summary: "End a losing install whose content was merged",
    description:
      "Refused while the loser is not synced or was seen as one for less than 5 minutes; the server then keeps trying.",
    body: strict({ loserRootId: Type.String() }),
    example: { loserRootId: "bafyrei…" },
    responses: { 204: { description: "Resolved, now or before" } },
    errors: ["bundle.not_found", "bundle.not_loser", "bundle.loser_not_ready", "space.read_only"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).bundles.resolve(params.bundleId, body.loserRootId),
  }),
  route({
    method: "POST",
    path: `${BUNDLES}/:bundleId/children`,
    id: "getBundleChild",
    tag: "Bundles",
    summary: "The bundle's child object for a seed, the same on every device",
    body: strict({ seed: Type.String(), types: Type.Optional(Type.Array(Type.String())) }),
    example: { seed: "inbox", types: ["page"] },
    responses: { 200: { description: "The child", schema: strict({ objectId: Type.String() }) } },
    errors: ["bundle.not_found", "bundle.not_ready", ["type.not_found", 400], "dataset.validation", "space.read_only"],
    handler: async ({ engine, params, body }) => {
      const { bundles } = await engine.space(params.spaceId);
      return { objectId: await bundles.child(params.bundleId, body.seed, body.types ?? []) };
    },
  }),
];
