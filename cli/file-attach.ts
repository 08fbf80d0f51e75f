import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { localCommand } from "./command.ts";
import { EXIT, UsageError } from "./exit.ts";
import { fillPath, readJson, send } from "./http-client.ts";
import { prettyJson, writeOut } from "./output.ts";
import { type Progress, startProgress } from "./progress.ts";

export const fileAttach = localCommand({
  summary: "Attach a file to an object",
  examples: [
    "file attach <spaceId> <objectId> plan.pdf",
    "file attach <spaceId> <objectId> - --name notes.txt --mime text/plain",
  ],

  route: "POST /v1/spaces/:spaceId/objects/:objectId/files",
  args: {
    spaceId: { summary: "Id of the space" },
    objectId: { summary: "Id of the object" },
    path: { summary: "File to send, - for stdin" },
  },
  flags: {
    name: { kind: "text", summary: "Name to keep (default the file's own)" },
    mime: { kind: "text", hint: "type/subtype", summary: "Media type (default by the name's ending)" },
    variant: { kind: "text", hint: "TAG", summary: "What kind of variant it is, such as thumb; with --variant-of" },
    "variant-of": { kind: "text", hint: "ID", summary: "File it is a variant of; with --variant" },
  },
  run: async ({ args, flags }, { target: findTarget, globals, reader }) => {
    const target = await findTarget();
    const fromStdin = args.path === "-";
    if (fromStdin) reader.claimStdin("<path>");
    const totalBytes = fromStdin ? undefined : await fileSize(args.path);
    const source = fromStdin ? Bun.stdin : Bun.file(args.path);
    const name = flags.name ?? (fromStdin ? undefined : basename(args.path));
    const parameters = { name, variant: flags.variant, variantOf: flags["variant-of"] };
    const progress = startProgress("sent", totalBytes);
    try {
      const response = await send(target, {
        method: "POST",
        path: fillPath("/v1/spaces/:spaceId/objects/:objectId/files", args),
        query: Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined),
        raw: {
          bytes: progress ? counted(source.stream(), progress) : fromStdin ? source.stream() : source,
          mediaType: flags.mime ?? (fromStdin ? "application/octet-stream" : source.type),
        },
        // How long a file takes is the file's affair, unless a limit was asked for.
        untimed: globals.timeout === undefined,
      });
      progress?.end();
      await writeOut(prettyJson(await readJson(target, response)));
      return EXIT.ok;
    } finally {
      progress?.end();
    }
  },
});

async function fileSize(path: string): Promise<number> {
  try {
    const facts = await stat(path);
    if (facts.isDirectory()) throw new UsageError(`${path} is a directory; attach its files one by one`);
    return facts.size;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

function counted(stream: ReadableStream<Uint8Array>, progress: Progress): ReadableStream<Uint8Array> {
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        progress.add(chunk.byteLength);
        controller.enqueue(chunk);
      },
    }),
  );
}
