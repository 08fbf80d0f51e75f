import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { EXIT, UsageError } from "../io/exit.ts";
import { fillPath, readJson, send } from "../io/http-client.ts";
import { prettyJson, writeOut } from "../io/output.ts";
import { type Progress, startProgress } from "../io/progress.ts";
import type { CommandContext } from "../parse/command-spec.ts";
import { localCommand } from "./command.ts";

const PATH = "/v1/spaces/:spaceId/objects/:objectId/files";

export const fileAttach = localCommand({
  summary: "Attach files to an object",
  examples: [
    "file attach <spaceId> <objectId> plan.pdf",
    "file attach <spaceId> <objectId> one.jpg two.jpg three.jpg",
    "file attach <spaceId> <objectId> - --name notes.txt --mime text/plain",
  ],

  route: `POST ${PATH}`,
  args: {
    spaceId: { summary: "Id of the space" },
    objectId: { summary: "Id of the object" },
    path: { summary: "File to send, or several; - for stdin", many: true },
  },
  flags: {
    name: { kind: "text", summary: "Name to keep (default the file's own)" },
    mime: { kind: "text", hint: "type/subtype", summary: "Media type (default by the name's ending)" },
    variant: { kind: "text", hint: "TAG", summary: "What kind of variant it is, such as thumb; with --variant-of" },
    "variant-of": { kind: "text", hint: "ID", summary: "File it is a variant of; with --variant" },
  },
  run: async ({ args, flags }, context) => {
    const paths = args.path.split("\0");
    if (paths.length > 1) {
      if (flags.name !== undefined) throw new UsageError("--name is for one file; several keep their own names");
      if (paths.includes("-"))
        throw new UsageError("- (stdin) stands alone; attach the files by a command of their own");
    }
    const sizes = await Promise.all(paths.map(async (path) => (path === "-" ? undefined : fileSize(path))));
    // Files go one after the other, and each answer is printed at once, so that after a failure it is known what was
    // attached.
    for (const [index, path] of paths.entries()) await attachOne(path, sizes[index], { args, flags }, context);
    return EXIT.ok;
  },
});

async function attachOne(
  path: string,
  totalBytes: number | undefined,
  {
    args,
    flags,
  }: { args: Record<string, string>; flags: Partial<Record<"name" | "mime" | "variant" | "variant-of", string>> },
  { target: findTarget, globals, reader }: CommandContext,
): Promise<void> {
  const target = await findTarget();
  const fromStdin = path === "-";
  if (fromStdin) reader.claimStdin("<path>");
  const source = fromStdin ? Bun.stdin : Bun.file(path);
  const name = flags.name ?? (fromStdin ? undefined : basename(path));
  const parameters = { name, variant: flags.variant, variantOf: flags["variant-of"] };
  const progress = startProgress(fromStdin ? "sent" : `${basename(path)}: sent`, totalBytes);
  try {
    const response = await send(target, {
      method: "POST",
      path: fillPath(PATH, args),
      query: Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined),
      raw: {
        bytes: progress ? counted(source.stream(), progress) : fromStdin ? source.stream() : source,
        mediaType: flags.mime ?? (fromStdin ? "application/octet-stream" : source.type),
      },
      // The time depends on the file's size, so there is no limit unless the user set one.
      untimed: globals.timeout === undefined,
    });
    progress?.end();
    await writeOut(prettyJson(await readJson(target, response)));
  } finally {
    progress?.end();
  }
}

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
