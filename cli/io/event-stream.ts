import type { Json } from "../../src/protocol/json.ts";
import { CliError, EXIT, type ExitCode } from "./exit.ts";
import { type ApiRequest, guarded, send } from "./http-client.ts";
import { writeOut } from "./output.ts";
import { readSse, type SseFrame } from "./sse-reader.ts";
import type { Target } from "./target.ts";

/**
 * Prints every frame of a stream as one line `{"event":…,"data":…}` until the server closes it, the reader of our stdout
 * is gone, or SIGINT or SIGTERM ends the command; all three are a clean end. A stream that breaks off without `closed` is
 * not.
 */
export async function printStream(target: Target, request: ApiRequest): Promise<ExitCode> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    const response = await send(target, { ...request, untimed: true, signal: stop.signal });
    const closed = await guarded(target, () => printFrames(response, target));
    if (closed) return EXIT.ok;
    throw new CliError(`${target.addr} ended the stream without saying closed`, EXIT.unreachable);
  } catch (error) {
    if (stop.signal.aborted) return EXIT.ok;
    throw error;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/** Resolves to whether the stream came to its end, as opposed to being cut off. */
async function printFrames(response: Response, target: Target): Promise<boolean> {
  if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
    throw new CliError(`${target.addr} does not answer with a stream; is it an svc server?`, EXIT.server);
  }
  for await (const frame of readSse(response.body)) {
    const read = await writeOut(`${JSON.stringify({ event: frame.event, data: dataOf(frame, target) })}\n`);
    if (!read || frame.event === "closed") return true;
  }
  return false;
}

function dataOf(frame: SseFrame, target: Target): Json {
  try {
    return JSON.parse(frame.data) as Json;
  } catch {
    throw new CliError(`${target.addr} sent a frame ${frame.event} whose data is not JSON`, EXIT.server);
  }
}
