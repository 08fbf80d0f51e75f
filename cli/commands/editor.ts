import { UsageError } from "../io/exit.ts";
import { command, group } from "./command.ts";
import { PATCH_FLAGS } from "./shared-flags.ts";

export const editor = group("Documents", {
  blocks: group("Blocks of a document", {
    create: command({
      summary: "Add a block",
      examples: ['editor blocks create <spaceId> <objectId> --type heading --text "Plan" --style \'{"level":2}\''],

      route: "POST /v1/spaces/:spaceId/objects/:objectId/editor/blocks",
      flags: {
        type: { kind: "text", hint: "paragraph|heading|…", summary: "Kind of block", field: "type" },
        text: { kind: "text", hint: "markdown", summary: "Its text, inline markdown", field: "text" },
        style: { kind: "json", summary: 'Its style, such as {"level":2}', field: "style" },
        parent: { kind: "text", hint: "ID", summary: "Block it stands under", field: "nav.parentId" },
        pos: { kind: "text", hint: "POS", summary: "Its position among its siblings (default last)", field: "nav.pos" },
      },
      file: true,
    }),
    patch: command({
      summary: "Change leaves of a block",
      examples: ['editor blocks patch <spaceId> <objectId> <blockId> --set \'{"text":"New text"}\''],

      route: "PATCH /v1/spaces/:spaceId/objects/:objectId/editor/blocks/:blockId",
      flags: PATCH_FLAGS,
      file: true,
    }),
    delete: command({
      summary: "Remove a block; its children stay",
      route: "DELETE /v1/spaces/:spaceId/objects/:objectId/editor/blocks/:blockId",
    }),
  }),
  edit: command({
    summary: "Replace text in a document; every edit applies or none does",
    examples: ['editor edit <spaceId> <objectId> --old "Monday" --new "Tuesday"'],

    route: "PATCH /v1/spaces/:spaceId/objects/:objectId/editor/markdown",
    flags: {
      old: { kind: "text", summary: "Text that is there, exactly as rendered, once" },
      new: { kind: "text", summary: "Text to put in its place" },
      all: { kind: "switch", summary: "Replace every occurrence" },
      edits: {
        kind: "json",
        summary: "Array of {oldText, newText, replaceAll?} instead of --old and --new",
        field: "edits",
      },
    },
    file: true,
    body: ({ flags }) => {
      const single = flags.old !== undefined || flags.new !== undefined || flags.all !== undefined;
      if (flags.edits !== undefined || flags.file !== undefined) {
        if (single)
          throw new UsageError("--old, --new and --all are one edit; leave them out beside --edits or --file");
        return {};
      }
      if (flags.old === undefined || flags.new === undefined) throw new UsageError("give --old and --new, or --edits");
      return { edits: [{ oldText: flags.old, newText: flags.new, ...(flags.all ? { replaceAll: true } : {}) }] };
    },
  }),
});
