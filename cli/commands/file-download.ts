import { type FileHandle, open, readdir, rename, rm, stat, truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { CliError, EXIT, type ExitCode, UsageError } from "../io/exit.ts";
import { type ApiRequest, fillPath, guarded, send } from "../io/http-client.ts";
import { writeOut } from "../io/output.ts";
import { startProgress } from "../io/progress.ts";
import type { Target } from "../io/target.ts";
import type { CommandContext } from "../parse/command-spec.ts";
import { localCommand } from "./command.ts";

export const fileDownload = localCommand({
  summary: "Download a file's bytes to stdout or to a path",
  examples: ["file download <spaceId> <fileId> -o plan.pdf"],

  route: "GET /v1/spaces/:spaceId/files/:fileId/content",
  args: { spaceId: { summary: "Id of the space" }, fileId: { summary: "Id of the file" } },
  flags: {
    output: {
      kind: "text",
      hint: "PATH",
      summary: "File to write, whole or not at all; goes on where it stopped (- is stdout)",
      alias: "o",
    },
    variant: { kind: "text", hint: "TAG", summary: "This variant of the file instead" },
  },
  run: async ({ args, flags }, context) => {
    const request: ApiRequest = {
      method: "GET",
      path: fillPath("/v1/spaces/:spaceId/files/:fileId/content", args),
      query: flags.variant === undefined ? [] : [["variant", flags.variant]],
    };
    if (flags.output === undefined || flags.output === "-") return downloadToStdout(request, context);
    return downloadToFile(request, flags.output, context);
  },
});

async function downloadToStdout(request: ApiRequest, context: CommandContext): Promise<ExitCode> {
  await download(request, context, new AbortController().signal, { take: writeOut });
  return EXIT.ok;
}

/**
 * Downloads into a temporary file beside the target and renames it once complete. If the download breaks off and the
 * server named the bytes by a tag, the part stays under that name and the next call resumes it; otherwise nothing is
 * left.
 */
async function downloadToFile(request: ApiRequest, path: string, context: CommandContext): Promise<ExitCode> {
  if ((await stat(path).catch(() => undefined))?.isDirectory())
    throw new UsageError(`${path} is a directory; name a file`);
  const begun = await begunPart(path);
  const interrupt = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => interrupt.abort(signal);
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  let part: Part | undefined;
  try {
    // Asks for the part's last byte again: if the part is complete, a range after its end would be refused.
    const range = begun && { range: `bytes=${begun.size - 1}-`, "if-range": `"${begun.tag}"` };
    await download({ ...request, ...(range ? { headers: range } : {}) }, context, interrupt.signal, {
      begin: async (response) => {
        part = await openPart(path, response, begun);
        return part.keptBytes;
      },
      take: (chunk) => onDisk(path, () => append(part!.handle, chunk)),
    });
    const done = part!;
    await onDisk(path, async () => {
      await done.handle.close();
      await rename(done.path, path);
    });
    return EXIT.ok;
  } catch (error) {
    await part?.handle.close().catch(() => undefined);
    if (part && part.tag === undefined) await rm(part.path, { force: true });
    if (!interrupt.signal.aborted) throw error;
    const next = part?.tag === undefined ? "" : "; the same command goes on where it stopped";
    throw new CliError(`interrupted; ${path} is as it was${next}`, EXIT.user);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/**
 * A part of the bytes, in a file beside the target. `tag` is the server's name for the bytes; a part without one cannot
 * be resumed.
 */
interface Part {
  readonly path: string;
  readonly handle: FileHandle;
  readonly tag: string | undefined;
  readonly keptBytes: number;
}

/** A tag that a file's name can contain. */
const TAG = /^"([a-z0-9]{1,64})"$/;

/** The part that an earlier download to this place left. */
async function begunPart(path: string): Promise<{ path: string; tag: string; size: number } | undefined> {
  const prefix = `${basename(path)}.part-`;
  const names = await readdir(dirname(path)).catch(() => []); // a folder that cannot be read is refused when we write to it
  for (const name of names.filter((each) => each.startsWith(prefix)).sort()) {
    const tag = TAG.exec(`"${name.slice(prefix.length)}"`)?.[1];
    const partPath = join(dirname(path), name);
    const size = (await stat(partPath).catch(() => undefined))?.size ?? 0;
    if (tag !== undefined && size > 0) return { path: partPath, tag, size };
  }
  return undefined;
}

async function openPart(
  path: string,
  response: Response,
  begun: { path: string; tag: string; size: number } | undefined,
): Promise<Part> {
  const tag = TAG.exec(response.headers.get("etag") ?? "")?.[1];
  if (begun && response.status === 206 && tag === begun.tag) {
    const handle = await onDisk(begun.path, async () => {
      await truncate(begun.path, begun.size - 1);
      return open(begun.path, "a");
    });
    return { path: begun.path, tag, handle, keptBytes: begun.size - 1 };
  }
  if (begun) await rm(begun.path, { force: true }); // the part belongs to bytes that have changed since
  const partPath = `${path}.part-${tag ?? crypto.randomUUID()}`;
  return { path: partPath, tag, keptBytes: 0, handle: await onDisk(partPath, () => open(partPath, "w")) };
}

interface Taker {
  /** Called when the answer begins; resolves to how many bytes are there already. */
  begin?(response: Response): Promise<number>;
  take(chunk: Uint8Array): Promise<boolean>;
}

/** Passes on the bytes as they come, until the end or until no more are wanted. */
async function download(
  request: ApiRequest,
  context: CommandContext,
  signal: AbortSignal,
  { begin, take }: Taker,
): Promise<void> {
  const target = await context.target();
  const response = await sendPatiently(target, { ...request, signal }, context.globals.timeout !== undefined);
  const before = (await begin?.(response)) ?? 0;
  const coming = Number(response.headers.get("content-length")) || undefined;
  const progress = startProgress("received", coming && before + coming);
  progress?.add(before);
  try {
    const chunks = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
    for (;;) {
      const { done, value } = await guarded(target, () => chunks.read());
      if (done || !(await take(value))) return;
      progress?.add(value.byteLength);
    }
  } finally {
    progress?.end();
  }
}

/**
 * The default timeout applies only until the answer begins, because the rest depends on the file's size; a timeout set by
 * the user applies to the whole.
 */
async function sendPatiently(target: Target, request: ApiRequest, limitGiven: boolean): Promise<Response> {
  if (limitGiven) return send(target, request);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException("no answer", "TimeoutError")), target.timeoutMs);
  try {
    return await send(target, {
      ...request,
      untimed: true,
      signal: AbortSignal.any([request.signal ?? late.signal, late.signal]),
    });
  } finally {
    clearTimeout(timer);
  }
}

async function append(handle: FileHandle, chunk: Uint8Array): Promise<boolean> {
  await handle.appendFile(chunk);
  return true;
}

async function onDisk<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw new UsageError(`cannot write ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}
