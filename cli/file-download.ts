import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { localCommand } from "./command.ts";
import type { CommandContext } from "./command-spec.ts";
import { CliError, EXIT, type ExitCode, UsageError } from "./exit.ts";
import { type ApiRequest, fillPath, guarded, send } from "./http-client.ts";
import { writeOut } from "./output.ts";
import { startProgress } from "./progress.ts";
import type { Target } from "./target.ts";

export const fileDownload = localCommand({
  summary: "Download a file's bytes to stdout or to a path",
  examples: ["file download <spaceId> <fileId> -o plan.pdf"],

  route: "GET /v1/spaces/:spaceId/files/:fileId/content",
  args: { spaceId: { summary: "Id of the space" }, fileId: { summary: "Id of the file" } },
  flags: {
    output: { kind: "text", hint: "PATH", summary: "File to write, whole or not at all (- is stdout)", alias: "o" },
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
  await download(request, context, new AbortController().signal, writeOut);
  return EXIT.ok;
}

/** The bytes gather beside their place and are moved there once complete; failing or interrupted, nothing is left. */
async function downloadToFile(request: ApiRequest, path: string, context: CommandContext): Promise<ExitCode> {
  if ((await stat(path).catch(() => undefined))?.isDirectory())
    throw new UsageError(`${path} is a directory; name a file`);
  const partPath = `${path}.part-${crypto.randomUUID()}`;
  const handle = await onDisk(partPath, () => open(partPath, "wx"));
  const interrupt = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => interrupt.abort(signal);
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    await download(request, context, interrupt.signal, (chunk) => onDisk(partPath, () => append(handle, chunk)));
    await onDisk(path, async () => {
      await handle.close();
      await rename(partPath, path);
    });
    return EXIT.ok;
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(partPath, { force: true });
    throw interrupt.signal.aborted ? new CliError(`interrupted; ${path} is as it was`, EXIT.user) : error;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/** Hands the bytes to `take` as they come, until the end or until it wants no more. */
async function download(
  request: ApiRequest,
  context: CommandContext,
  signal: AbortSignal,
  take: (chunk: Uint8Array) => Promise<boolean>,
): Promise<void> {
  const target = await context.target();
  const response = await sendPatiently(target, { ...request, signal }, context.globals.timeout !== undefined);
  const progress = startProgress("received", Number(response.headers.get("content-length")) || undefined);
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

/** The default timeout is for the answer to begin, since how long the bytes take is their affair; a given one is for all. */
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
