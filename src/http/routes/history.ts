import {
  HistoryDiff,
  HistoryDiffQuery,
  HistoryPage,
  HistoryQuery,
  HistoryRecord,
  HistoryView,
  HistoryViewQuery,
} from "../../protocol/history.ts";
import { jsonText } from "../reply/reply.ts";
import { type Route, route } from "../route.ts";

const VERSION = "A change id, or a version text as `_ver` holds it";

/** Earlier versions of an object's records, and the changes that made them. */
export const historyRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/objects/:objectId/history",
    id: "listHistory",
    tag: "History",
    summary: "The changes of an object, newest first",
    description:
      "In the order in which changes are folded, the same on every device. Chat messages and datasets declared with skipHistory do not show. A page may end before its limit when it grows heavy; its cursor then goes on.",
    query: HistoryQuery,
    responses: { 200: { description: "A page of changes", schema: HistoryPage } },
    errors: ["space.not_joined", "object.not_found"],
    handler: async ({ engine, params, query, signal }) => {
      const { history } = await engine.space(params.spaceId);
      return history.list(params.objectId, query, signal);
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/objects/:objectId/history/diff",
    id: "diffVersions",
    tag: "History",
    summary: "What a version changed, or how two versions differ",
    description:
      "By leaf: `before` alone is taken away, `after` alone is new. Without `base` the version is compared with what it was written upon. Versions that were written apart are compared as they are, both ways.",
    query: HistoryDiffQuery,
    responses: { 200: { description: "Records that differ, by dataset", schema: HistoryDiff } },
    errors: ["space.not_joined", "object.not_found", "history.version_not_found", "history.view_too_large"],
    handler: async ({ engine, params, query, signal }) => {
      const { history } = await engine.space(params.spaceId);
      return history.diff(params.objectId, query, signal);
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/objects/:objectId/history/:version",
    id: "getVersion",
    tag: "History",
    summary: "The records of an object as a version knows them",
    description:
      "The fold of the version and everything it was written upon, whatever was written beside it. Synced fields only; deleted records show `_deletedAt`.",
    params: { version: VERSION },
    query: HistoryViewQuery,
    responses: { 200: { description: "Records by dataset", schema: HistoryView } },
    errors: ["space.not_joined", "object.not_found", "history.version_not_found", "history.view_too_large"],
    handler: async ({ engine, params, query, signal }) => {
      const { history } = await engine.space(params.spaceId);
      return jsonText(await history.view(params.objectId, params.version, query.dataset, signal));
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/objects/:objectId/history/:version/datasets/:dataset/records/:recordId",
    id: "getRecordVersion",
    tag: "History",
    summary: "One record as a version knows it",
    params: { version: VERSION },
    responses: { 200: { description: "The record, if there was one", schema: HistoryRecord } },
    errors: ["space.not_joined", "object.not_found", "history.version_not_found"],
    handler: async ({ engine, params, signal }) => {
      const { history } = await engine.space(params.spaceId);
      return history.recordView(params.objectId, params.version, params.dataset, params.recordId, signal);
    },
  }),
];
