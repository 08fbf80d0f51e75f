import { Type } from "@sinclair/typebox";
import { svcError } from "../../protocol/errors.ts";
import {
  CacheFreeBody,
  CacheFreed,
  CacheSize,
  FileInfoSchema,
  FileStats,
  FileStatusSchema,
} from "../../protocol/file.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { CollectionQueryBody, CollectionWindowBody, QueryReply } from "../../protocol/record.ts";
import { strict } from "../../protocol/schema.ts";
import { encodeFrame, LaggedFrame } from "../../protocol/sse-frames.ts";
import { fileResponse } from "../reply/file-response.ts";
import { queryReply, refuseTarget } from "../reply/query-reply.ts";
import { type Route, route } from "../route.ts";
import { openStream } from "../sse.ts";
import { liveSource } from "../stream/live-stream.ts";
import { ofSpace } from "../stream/space-stream.ts";
import { WINDOW_FRAMES } from "./windows.ts";

const OF_OBJECT = "/v1/spaces/:spaceId/objects/:objectId/files";
const FILES = "/v1/spaces/:spaceId/files";
const FILE = `${FILES}/:fileId`;
const FILTER_ERRORS = ["filter.invalid", "filter.unknown_operator", "filter.too_complex"] as const;
/** Media types of bodies that wrap a file instead of being one. */
const FORM = /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\s*(;|$)/i;

/** Files: bytes that belong to objects. */
export const fileRoutes: Route[] = [
  route({
    method: "POST",
    path: OF_OBJECT,
    id: "attachFile",
    tag: "Files",
    summary: "Attach a file to an object",
    description:
      "The body is the file's bytes as they are, of any length, with its media type as Content-Type; no form. When this answers, they are safe on this device; the backup to the network goes on behind it.",
    query: Type.Object({
      name: Type.Optional(Type.String({ description: "Kept verbatim" })),
      variant: Type.Optional(Type.String({ description: "What kind of variant it is, such as thumb; with variantOf" })),
      variantOf: Type.Optional(Type.String({ description: "The file, of the same object, that it is a variant of" })),
    }),
    rawBody: true,
    responses: { 201: { description: "The file", schema: FileInfoSchema } },
    errors: [
      "file.not_found",
      "file.variant_invalid",
      "dataset.validation",
      "request.unsupported_media_type",
      "space.read_only",
      "space.not_joined",
      "storage.full",
    ],
    handler: async ({ engine, params, query, request, server }) => {
      const mime = request.headers.get("content-type");
      if (mime !== null && FORM.test(mime))
        throw svcError(
          "request.unsupported_media_type",
          { got: mime },
          "Send the file's bytes as the body, not a form: curl --data-binary @FILE -H 'Content-Type: image/png', with the file's own media type",
        );
      const { files } = await engine.space(params.spaceId);
      // After the last byte, sealing a large file takes time during which no byte is sent in either direction.
      server.disableIdleTimeout(request);
      return files.attach(params.objectId, { ...query, mime }, request.body);
    },
  }),
  route({
    method: "POST",
    path: `${OF_OBJECT}/query`,
    id: "queryFiles",
    tag: "Files",
    summary: "Query the rows of an object's files",
    body: CollectionQueryBody,
    example: { filter: { mime: "image/png" }, sort: ["-_ver.id"], limit: 50 },
    responses: { 200: { description: "The rows", schema: QueryReply } },
    errors: ["file.not_found", ...FILTER_ERRORS],
    handler: async ({ engine, params, body, signal }) => {
      refuseTarget(body);
      const { files, queries } = await engine.space(params.spaceId);
      return queryReply(await queries.query(files.rowsOf(params.objectId), body, { signal }));
    },
  }),
  route({
    method: "POST",
    path: `${OF_OBJECT}/query/subscribe`,
    id: "watchFileRows",
    tag: "Files",
    summary: "Watch a window of the rows of an object's files",
    body: CollectionWindowBody,
    example: { sort: ["-_ver.id"], limit: 50 },
    responses: { 200: WINDOW_FRAMES },
    errors: ["file.not_found", ...FILTER_ERRORS],
    handler: async (ctx) => {
      refuseTarget(ctx.body);
      const { files, live } = await ctx.engine.space(ctx.params.spaceId);
      const { objectId, dataset } = files.rowsOf(ctx.params.objectId);
      return openStream(
        ctx,
        ofSpace(
          ctx,
          liveSource((sink) => live.subscribe({ objectId, dataset }, ctx.body, sink)),
        ),
      );
    },
  }),
  route({
    method: "GET",
    path: FILES,
    id: "listFiles",
    tag: "Files",
    summary: "The files of a space, newest first",
    description: "Variants are files of their own here.",
    query: Type.Object({
      objectId: Type.Optional(Type.String({ description: "Only those of this object" })),
      limit: Type.Optional(Type.Integer({ minimum: 0, description: "At most so many; absent or 0 is all" })),
    }),
    responses: { 200: { description: "The files", schema: strict({ files: Type.Array(FileInfoSchema) }) } },
    handler: async ({ engine, params, query }) => {
      const { files } = await engine.space(params.spaceId);
      return { files: files.list(query.objectId, query.limit ?? 0) };
    },
  }),
  route({
    method: "GET",
    path: `${FILES}/stats`,
    id: "getFileStats",
    tag: "Files",
    summary: "How many files are backed up",
    responses: { 200: { description: "As this device knows", schema: FileStats } },
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.stats(),
  }),
  route({
    method: "GET",
    path: `${FILES}/subscribe`,
    id: "watchFiles",
    tag: "Files",
    summary: "Watch files being backed up and fetched",
    description: "Transitions on this device from now on; read a file's status after `ready` for what is.",
    responses: {
      200: {
        description: "What moved. `lagged` counts frames that were dropped for a slow reader",
        frames: { status: FileStatusSchema, lagged: LaggedFrame },
      },
    },
    handler: async (ctx) =>
      openStream(
        ctx,
        ofSpace(ctx, {
          capacity: LIMITS.forwarderCapacity,
          overflow: "lag",
          async start(sink) {
            const { files } = await ctx.engine.space(ctx.params.spaceId);
            return { stop: files.subscribe((status) => sink.send(encodeFrame("status", status))) };
          },
        }),
      ),
  }),
  route({
    method: "GET",
    path: FILE,
    id: "getFile",
    tag: "Files",
    summary: "One file",
    responses: { 200: { description: "The file", schema: FileInfoSchema } },
    errors: ["file.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.get(params.fileId),
  }),
  route({
    method: "GET",
    path: `${FILE}/content`,
    id: "getFileContent",
    tag: "Files",
    summary: "The bytes of a file",
    description:
      "What is not on this device is fetched while it is sent. Takes Range, If-None-Match and If-Range (RFC 9110); of several ranges at once the whole is sent. Nothing of a file runs on this origin: all but images, audio and video is sandboxed, and what could run is sent as an attachment.",
    query: Type.Object({ variant: Type.Optional(Type.String({ description: "This variant of the file instead" })) }),
    responses: {
      200: {
        description: "The bytes",
        bytes: "*/*",
        headers: { ETag: "Names the bytes", "Accept-Ranges": "bytes" },
      },
      206: { description: "The range that was asked for", bytes: "*/*" },
      304: { description: "They are what If-None-Match names" },
      416: { description: "file.range_not_satisfiable" },
    },
    errors: ["file.not_found", "file.not_available", "file.range_not_satisfiable", "storage.full"],
    handler: async ({ engine, params, query, request, log }) => {
      const { files } = await engine.space(params.spaceId);
      return fileResponse(request, files.serve(params.fileId, query.variant), log);
    },
  }),
  route({
    method: "GET",
    path: `${FILE}/status`,
    id: "getFileStatus",
    tag: "Files",
    summary: "Whether a file is backed up",
    responses: { 200: { description: "As this device knows", schema: FileStatusSchema } },
    errors: ["file.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.status(params.fileId),
  }),
  route({
    method: "POST",
    path: `${FILE}/pin`,
    id: "pinFile",
    tag: "Files",
    summary: "Keep a file's bytes on this device",
    description: "Fetches them if they are not here. `offload` ends it.",
    responses: { 204: { description: "Kept" } },
    errors: ["file.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.pin(params.fileId),
  }),
  route({
    method: "POST",
    path: `${FILE}/retry`,
    id: "retryFile",
    tag: "Files",
    summary: "Try a file's backup again now",
    responses: { 204: { description: "It is tried behind the answer" } },
    errors: ["file.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.retry(params.fileId),
  }),
  route({
    method: "POST",
    path: `${FILE}/offload`,
    id: "offloadFile",
    tag: "Files",
    summary: "Drop the local bytes of a file that is backed up",
    description: "They are fetched again when they are asked for. Bytes that lie in the file's row stay.",
    responses: { 204: { description: "Dropped" } },
    errors: ["file.not_found", "file.not_durable"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.offload(params.fileId),
  }),
  route({
    method: "DELETE",
    path: FILE,
    id: "deleteFile",
    tag: "Files",
    summary: "Delete a file and its variants",
    responses: { 204: { description: "Deleted, for everybody" } },
    errors: ["file.not_found", "space.read_only"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).files.delete(params.fileId),
  }),
  route({
    method: "GET",
    path: "/v1/files/cache",
    id: "getFileCache",
    tag: "Files",
    summary: "How much room files take on this device",
    responses: { 200: { description: "Over all spaces", schema: CacheSize } },
    handler: async ({ engine }) => ({ size: engine.fileCache.size() }),
  }),
  route({
    method: "POST",
    path: "/v1/files/cache/free",
    id: "freeFileCache",
    tag: "Files",
    summary: "Make room: drop what was used longest ago and the network keeps",
    description: "Never the only copy, never what is pinned.",
    body: CacheFreeBody,
    example: { bytes: 104857600 },
    responses: { 200: { description: "How much that freed", schema: CacheFreed } },
    handler: async ({ engine, body }) => ({ freed: await engine.fileCache.free(body.bytes) }),
  }),
  route({
    method: "POST",
    path: "/v1/files/cache/sweep",
    id: "sweepFileCache",
    tag: "Files",
    summary: "Drop what nothing refers to",
    description: "Bytes that nothing has referred to for a day of the server's running time.",
    responses: { 204: { description: "Swept" } },
    handler: async ({ engine }) => engine.fileCache.sweep(),
  }),
];
