import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, strict } from "./schema.ts";

export const FileInfoSchema = named(
  "FileInfoSchema",
  strict({
    fileId: Type.String(),
    objectId: Type.String({ description: "The object it is attached to" }),
    rootCid: Type.Optional(
      Type.String({ description: "Names the bytes within the space; absent when they lie in the file's row" }),
    ),
    size: Type.Integer({ description: "Bytes" }),
    inline: Type.Boolean({ description: "The bytes lie in the file's row: it has fewer than 4096" }),
    durable: Type.Boolean({ description: "The network keeps all of it, as far as this device has seen" }),
    cached: Type.Boolean({ description: "All of it is on this device" }),
    name: Type.Optional(Type.String()),
    mime: Type.Optional(Type.String()),
    variant: Type.Optional(Type.String({ description: "What kind of variant it is, such as thumb" })),
    variantOf: Type.Optional(Type.String({ description: "The file it is a variant of" })),
  }),
);

const FileState = named(
  "FileState",
  oneOf(["durable", "inflight", "limited"], {
    description:
      "durable: the network keeps every chunk and gave each back; limited: the network refuses for want of room; inflight: not yet",
  }),
);

export const FileStatusSchema = named(
  "FileStatusSchema",
  strict({
    fileId: Type.String(),
    objectId: Type.String(),
    state: FileState,
    cached: Type.Boolean(),
    attempts: Type.Optional(Type.Integer({ description: "Failed backups in a row, while it is not durable" })),
    lastErr: Type.Optional(Type.String({ description: "Why the last one failed" })),
  }),
);
export type FileStatusSchema = Static<typeof FileStatusSchema>;

export const FileStats = named(
  "FileStats",
  strict({
    total: Type.Integer(),
    durable: Type.Integer(),
    inflight: Type.Integer(),
    limited: Type.Integer(),
    oneCopy: Type.Integer({ description: "Files of which one copy alone is known: a single device has them" }),
  }),
);

export const CacheSize = named(
  "CacheSize",
  strict({
    size: Type.Integer({ description: "Bytes of files on this device, over all spaces" }),
  }),
);
export const CacheFreeBody = named("CacheFreeBody", strict({ bytes: Type.Integer({ minimum: 1 }) }));
export const CacheFreed = named("CacheFreed", strict({ freed: Type.Integer({ description: "Bytes" }) }));
