import { call, spacePath } from "./api-client.ts";

/** What a write did to the blocks of a document. */
export interface DocumentChange {
  inserted: string[];
  updated: string[];
  deleted: string[];
  unchanged: number;
}

/** Replace `oldText`, which occurs exactly once in the document, by `newText`. */
export interface TextEdit {
  oldText: string;
  newText: string;
}

const markdownPath = (spaceId: string, objectId: string) =>
  spacePath(spaceId, "objects", objectId, "editor", "markdown");

export const editorApi = {
  read: async (spaceId: string, objectId: string) =>
    (await call<{ content: string }>("GET", markdownPath(spaceId, objectId))).content,
  replace: (spaceId: string, objectId: string, content: string) =>
    call<DocumentChange>("PUT", markdownPath(spaceId, objectId), { content }),
  edit: (spaceId: string, objectId: string, edits: readonly TextEdit[]) =>
    call<DocumentChange>("PATCH", markdownPath(spaceId, objectId), { edits }),
};
