import { svcError } from "../../protocol/errors.ts";
import { Backlinks, LeafPatchBody, PropertyCreateBody, PropertyCreated, PropertyList } from "../../protocol/type.ts";
import { type Route, route } from "../route.ts";

const CHANGE_ERRORS = [
  "type.not_found",
  "type.registered",
  "space.read_only",
  "dataset.validation",
  "request.too_large",
] as const;

/** Properties of types, and the backlinks they give an object. */
export const propertyRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/types/:typeId/properties",
    id: "listProperties",
    tag: "Types",
    summary: "List a type's properties",
    responses: { 200: { description: "The properties; none yet is an empty list", schema: PropertyList } },
    errors: ["type.not_found"],
    handler: async ({ engine, params }) => {
      const { properties } = await engine.space(params.spaceId);
      return { properties: properties.list(params.typeId) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/types/:typeId/properties",
    id: "addProperty",
    tag: "Types",
    summary: "Add a property",
    description: "Values are keyed by the propId it answers. Kind, scope and format type never change afterwards.",
    body: PropertyCreateBody,
    example: {
      name: "State",
      format: { type: "select", options: { open: { name: "Open", color: "green" }, done: { name: "Done" } } },
    },
    responses: { 201: { description: "The property", schema: PropertyCreated } },
    errors: [...CHANGE_ERRORS, "property.format_invalid", "type.xkey_conflict"],
    handler: async ({ engine, params, body }) => {
      const { properties } = await engine.space(params.spaceId);
      const property = await properties.add(params.typeId, body);
      return { ...property, propId: property.id };
    },
  }),
  route({
    method: "PATCH",
    path: "/v1/spaces/:spaceId/types/:typeId/properties/:propId",
    id: "updateProperty",
    tag: "Types",
    summary: "Change display leaves of a property",
    description:
      "name, description, xKey, meta.<key>, format.ui, format.filter, format.meta.<key>, format.options.<key>.name|color|pos|meta.<key>. " +
      "Set leaves; containers (an option, meta) can only be unset.",
    body: LeafPatchBody,
    example: { set: { "format.options.done.color": "gray" }, unset: ["format.options.open"] },
    responses: { 204: { description: "Changed" } },
    errors: [...CHANGE_ERRORS, "sdk.not_found", "property.immutable", "property.format_invalid", "type.xkey_conflict"],
    handler: async ({ engine, params, body }) => {
      const { properties } = await engine.space(params.spaceId);
      await properties.patch(params.typeId, params.propId, body);
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/types/:typeId/properties/:propId",
    id: "removeProperty",
    tag: "Types",
    summary: "Remove a property; values stay, later ones are refused",
    responses: { 204: { description: "Removed" } },
    errors: [...CHANGE_ERRORS, "sdk.not_found"],
    handler: async ({ engine, params }) => {
      const { properties } = await engine.space(params.spaceId);
      await properties.remove(params.typeId, params.propId);
    },
  }),
  ...(["attach", "detach"] as const).map((verb) =>
    route({
      method: "POST",
      path: `/v1/spaces/:spaceId/properties/:objectId/${verb}/:typeId`,
      id: `${verb}Type`,
      tag: "Objects",
      summary: `${verb === "attach" ? "Attach a type to" : "Detach a type from"} an object (not offered)`,
      responses: { 204: { description: "Never" } },
      errors: ["sdk.not_implemented"],
      handler: async ({ engine, params }) => {
        await engine.space(params.spaceId);
        throw svcError("sdk.not_implemented", undefined, "Types are bound when an object is created");
      },
    }),
  ),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/objects/:objectId/backlinks",
    id: "listBacklinks",
    tag: "Objects",
    summary: "Who links to an object",
    description:
      "Through properties of format links, of types that the linking object carries. An unknown id has none.",
    responses: { 200: { description: "One entry per object and property", schema: Backlinks } },
    handler: async ({ engine, params }) => {
      const { types } = await engine.space(params.spaceId);
      return { backlinks: types.backlinks(params.objectId) };
    },
  }),
];
