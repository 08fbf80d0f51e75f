import { Type } from "@sinclair/typebox";
import { svcError } from "../../protocol/errors.ts";
import { NOTIFY_MODES } from "../../protocol/notify-mode.ts";
import { CollectionQueryBody, QueryReply } from "../../protocol/record.ts";
import { strict } from "../../protocol/schema.ts";
import {
  DerivedSpaceItem,
  SpaceCreateBody,
  SpaceInfo,
  SpacePatchBody,
  SpaceSettingsBody,
} from "../../protocol/space.ts";
import { queryReply, refuseTarget } from "../reply/query-reply.ts";
import { type Route, route } from "../route.ts";

const EXAMPLE_SPACE = {
  id: "bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
  name: "Home",
  createdAt: { $date: "2026-01-31T09:30:00.000Z" },
  spaceType: "svc.space",
  author: "A5dZ6hL1nKpQ8rT3uVwXyZ2aBcDeFgHjKmNpQrStUvWxYz12",
  ownRole: "owner",
  status: "active",
};

/** The collection of `/v1/spaces/query`: rows of spaces, or of profiles. */
const SPACES_COLLECTIONS = ["spaces", "profile"];

export function spacesCollection(dataset: string | undefined): string {
  const name = dataset || "spaces";
  if (!SPACES_COLLECTIONS.includes(name))
    throw svcError(
      "request.invalid_field",
      { field: "dataset", reason: "spaces or profile" },
      "dataset must be spaces or profile",
    );
  return name;
}

/** Spaces of the account, from the rows of its own space. */
export const spaceRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces",
    id: "createSpace",
    tag: "Spaces",
    summary: "Create a space",
    body: SpaceCreateBody,
    example: { name: "Home" },
    responses: { 201: { description: "The space", schema: SpaceInfo, example: EXAMPLE_SPACE } },
    errors: ["dataset.validation", "request.too_large"],
    handler: async ({ engine, body }) => {
      const { spaceType, ...metadata } = body;
      if (spaceType && spaceType !== "svc.space") {
        throw svcError(
          "request.invalid_field",
          { field: "spaceType", reason: "empty or svc.space", spaceType },
          "spaceType must be empty or svc.space",
        );
      }
      return engine.life.create(metadata);
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces",
    id: "listSpaces",
    tag: "Spaces",
    summary: "List spaces",
    query: Type.Object({
      status: Type.Optional(Type.String({ description: "`all` or exactly one status; active by default" })),
    }),
    responses: { 200: { description: "The spaces", schema: Type.Array(SpaceInfo), example: [EXAMPLE_SPACE] } },
    handler: async ({ engine, query }) => engine.spaces.list(query.status || undefined),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/query",
    id: "querySpaces",
    tag: "Spaces",
    summary: "Query the raw rows of spaces, or of profiles",
    body: CollectionQueryBody,
    example: { filter: { status: "active" }, sort: ["name"] },
    responses: { 200: { description: "The rows", schema: QueryReply } },
    errors: ["filter.invalid", "filter.unknown_operator", "filter.too_complex"],
    handler: async ({ engine, body, signal }) => {
      refuseTarget(body, ["objectId"]);
      const dataset = spacesCollection(body.dataset);
      const queries = dataset === "spaces" ? engine.spacesListing().queries : engine.techQueries;
      const source = queries.sourceOf(engine.tech.index.idText, dataset);
      return queryReply(await queries.query(source, body, { signal }));
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/derived",
    id: "listDerivedSpaces",
    tag: "Spaces",
    summary: "The derived spaces an account may have",
    description: "Resolves names to ids, never creates.",
    responses: { 200: { description: "The registry", schema: strict({ spaces: Type.Array(DerivedSpaceItem) }) } },
    handler: async ({ engine }) => ({ spaces: engine.life.derived() }),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/derived/:name",
    id: "createDerivedSpace",
    tag: "Spaces",
    summary: "Make a derived space, or find it made",
    responses: { 201: { description: "The space", schema: SpaceInfo } },
    errors: ["space.derived_unknown", "space.deleted"],
    handler: async ({ engine, params }) => engine.life.ensureDerived(params.name),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId",
    id: "getSpace",
    tag: "Spaces",
    summary: "One space",
    description: "Rows that are not active are served from the index, nothing is loaded.",
    responses: { 200: { description: "The space", schema: SpaceInfo, example: EXAMPLE_SPACE } },
    handler: async ({ engine, params }) => engine.spaces.info(params.spaceId),
  }),
  route({
    method: "PATCH",
    path: "/v1/spaces/:spaceId",
    id: "updateSpace",
    tag: "Spaces",
    summary: "Change name, description or icon of a space",
    description: "An absent key keeps its value, an empty string clears it. The row follows shortly after.",
    body: SpacePatchBody,
    example: { name: "Home and garden" },
    responses: { 204: { description: "Changed" } },
    errors: ["space.read_only", "dataset.validation", "request.too_large"],
    handler: async ({ engine, params, body }) => {
      if (Object.keys(body).length === 0)
        throw svcError(
          "request.missing_field",
          { field: "name" },
          "Give at least one of name, description and iconCid",
        );
      await engine.life.patch(params.spaceId, body);
    },
  }),
  route({
    method: "PATCH",
    path: "/v1/spaces/:spaceId/settings",
    id: "updateSpaceSettings",
    tag: "Spaces",
    summary: "Change this account's own settings of a space",
    body: SpaceSettingsBody,
    example: { set: { notifyMode: "mentions" }, unset: ["color"] },
    responses: { 204: { description: "Changed" } },
    errors: ["dataset.validation", "request.too_large"],
    handler: async ({ engine, params, body }) => {
      const set = body.set ?? {};
      const unset = body.unset ?? [];
      checkSettings(set, unset);
      await engine.spaces.patchSettings(params.spaceId, set, unset);
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId",
    id: "deleteSpace",
    tag: "Spaces",
    summary: "Delete a space of one's own, or leave another's",
    responses: { 204: { description: "Done here; others learn of it when they sync" } },
    errors: ["space.derived_undeletable"],
    handler: async ({ engine, params }) => engine.life.delete(params.spaceId),
  }),
];

function checkSettings(set: Record<string, unknown>, unset: readonly string[]): void {
  const refuse = (field: string, reason: string) =>
    svcError("request.invalid_field", { field, reason }, `${field}: ${reason}`);
  const keys = { set: Object.keys(set), unset };
  for (const member of ["set", "unset"] as const) {
    for (const key of keys[member]) {
      if (key === "" || key.includes(".") || key === "__proto__" || key === "*")
        throw refuse(key || member, "a settings key is not empty and has no dots");
    }
  }
  const both = unset.find((key) => Object.hasOwn(set, key));
  if (both !== undefined) throw refuse(both, "a key stands in set or in unset, not in both");
  if (Object.hasOwn(set, "notifyMode") && !NOTIFY_MODES.some((mode) => mode === set["notifyMode"]))
    throw refuse("notifyMode", `must be one of ${NOTIFY_MODES.join(", ")}`);
  if (Object.keys(set).length + unset.length === 0)
    throw svcError("request.missing_field", { field: "set" }, "Give set, unset or both");
}
