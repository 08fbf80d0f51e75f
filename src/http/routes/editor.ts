import { Type } from "@sinclair/typebox";
import { WriteReply } from "../../protocol/record.ts";
import { named, strict } from "../../protocol/schema.ts";
import { writeReply } from "../reply/rejections.ts";
import { type Route, route } from "../route.ts";

const EDITOR = "/v1/spaces/:spaceId/objects/:objectId/editor";

const Ids = Type.Array(Type.String());
const MarkdownReply = named(
  "MarkdownReply",
  strict({ inserted: Ids, updated: Ids, deleted: Ids, unchanged: Type.Integer() }),
);
const ContentBody = named("ContentBody", strict({ content: Type.String() }));
const Style = named(
  "Style",
  Type.Object({}, { additionalProperties: true, description: "level, ordered, checked, lang, and the client's own" }),
);

/** The block document of an object. Blocks are read with a query on the dataset `editor_blocks`, sorted by `nav.pos`. */
export const editorRoutes: Route[] = [
  route({
    method: "GET",
    path: `${EDITOR}/markdown`,
    id: "getMarkdown",
    tag: "Editor",
    summary: "The document as markdown",
    responses: {
      200: {
        description: "The very bytes that were put, as far as blocks were not edited one by one",
        schema: strict({ content: Type.String() }),
      },
    },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) => ({
      content: (await engine.space(params.spaceId)).editor.markdown(params.objectId),
    }),
  }),
  route({
    method: "PUT",
    path: `${EDITOR}/markdown`,
    id: "setMarkdown",
    tag: "Editor",
    summary: "Replace the document, writing only what differs",
    body: ContentBody,
    example: { content: "# Groceries\n\n- milk\n- bread\n" },
    responses: { 200: { description: "What became of the blocks", schema: MarkdownReply } },
    errors: ["object.not_found", "dataset.validation", "space.read_only", "request.too_large"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).editor.put(params.objectId, body.content),
  }),
  route({
    method: "PATCH",
    path: `${EDITOR}/markdown`,
    id: "editMarkdown",
    tag: "Editor",
    summary: "Replace stretches of the current rendering, all or none",
    body: strict({
      edits: Type.Array(
        strict({ oldText: Type.String(), newText: Type.String(), replaceAll: Type.Optional(Type.Boolean()) }),
      ),
    }),
    example: { edits: [{ oldText: "- bread", newText: "- rye bread" }] },
    responses: { 200: { description: "What became of the blocks", schema: MarkdownReply } },
    errors: [
      "object.not_found",
      "dataset.validation",
      "markdown.no_match",
      "markdown.ambiguous_match",
      "markdown.overlapping_edits",
      "dataset.validation",
      "space.read_only",
      "request.too_large",
    ],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).editor.patch(params.objectId, body.edits),
  }),
  route({
    method: "POST",
    path: `${EDITOR}/markdown/append`,
    id: "appendMarkdown",
    tag: "Editor",
    summary: "Add markdown at the end, without comparing",
    body: ContentBody,
    example: { content: "- butter" },
    responses: { 200: { description: "What became of the blocks", schema: MarkdownReply } },
    errors: ["object.not_found", "dataset.validation", "space.read_only", "request.too_large"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).editor.append(params.objectId, body.content),
  }),
  route({
    method: "POST",
    path: `${EDITOR}/blocks`,
    id: "createBlock",
    tag: "Editor",
    summary: "Create a block",
    body: strict({
      type: Type.String(),
      style: Type.Optional(Style),
      text: Type.Optional(Type.String({ description: "Inline markdown" })),
      nav: Type.Optional(strict({ parentId: Type.Optional(Type.String()), pos: Type.Optional(Type.String()) })),
    }),
    example: { type: "paragraph", text: "Hello" },
    responses: { 201: { description: "The block's id is recordIds[0]", schema: WriteReply } },
    errors: ["object.not_found", "dataset.validation", "space.read_only", "request.too_large"],
    handler: async ({ engine, params, body }) => {
      const { editor } = await engine.space(params.spaceId);
      return editor.createBlock(params.objectId, body as Parameters<typeof editor.createBlock>[1]);
    },
  }),
  route({
    method: "PATCH",
    path: `${EDITOR}/blocks/:blockId`,
    id: "updateBlock",
    tag: "Editor",
    summary: "Set and unset fields of a block",
    body: strict({
      set: Type.Optional(Type.Object({}, { additionalProperties: true, description: "Values by dotted path" })),
      unset: Type.Optional(Type.Array(Type.String())),
    }),
    example: { set: { "style.checked": true } },
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: ["object.not_found", "sdk.not_found", "space.read_only", "request.too_large"],
    handler: async ({ engine, params, body }) => {
      const { editor } = await engine.space(params.spaceId);
      const set = (body.set ?? {}) as Parameters<typeof editor.patchBlock>[2];
      return writeReply(await editor.patchBlock(params.objectId, params.blockId, set, body.unset ?? []));
    },
  }),
  route({
    method: "DELETE",
    path: `${EDITOR}/blocks/:blockId`,
    id: "deleteBlock",
    tag: "Editor",
    summary: "Delete a block; its children stay",
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: ["object.not_found", "sdk.not_found", "dataset.validation", "space.read_only"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).editor.deleteBlock(params.objectId, params.blockId),
  }),
];
