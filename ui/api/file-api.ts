import type { Static } from "@sinclair/typebox";
import type { FileInfoSchema } from "../../src/protocol/file.ts";
import { call, sendBytes, spacePath } from "./api-client.ts";

export type FileInfo = Static<typeof FileInfoSchema>;

/** Requests on the files of one object. */
export function fileApi(spaceId: string, objectId: string) {
  return {
    streamPath: spacePath(spaceId, "files", "subscribe"),
    list: async () =>
      (await call<{ files: FileInfo[] }>("GET", `${spacePath(spaceId, "files")}?${new URLSearchParams({ objectId })}`))
        .files,
    attach: (file: File) =>
      sendBytes(
        `${spacePath(spaceId, "objects", objectId, "files")}?${new URLSearchParams({ name: file.name })}`,
        file,
      ),
    contentPath: (fileId: string) => spacePath(spaceId, "files", fileId, "content"),
    remove: (fileId: string) => call<void>("DELETE", spacePath(spaceId, "files", fileId)),
  };
}

export type FileApi = ReturnType<typeof fileApi>;
