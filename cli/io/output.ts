/**
 * Writes data to stdout and resolves once the system has taken it, so that a consumer sees every frame at once and a slow
 * consumer slows down the producer. Resolves to false when nobody reads any more (`svc … | head -1`). `process.stdout` would
 * make a stream of the descriptor first, which takes longer than all else of a short command.
 */
export async function writeOut(data: string | Uint8Array): Promise<boolean> {
  try {
    await Bun.write(Bun.stdout, data);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPIPE") return false;
    throw error;
  }
}

/** A result for people and programs alike: pretty-printed JSON. */
export const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Writes messages, progress and errors to stderr: everything that is not data. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** The common shape of the server's errors and the engine's (`svc run`, `svc init`). */
interface CodedError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details?: Record<string, unknown>;
}

export function isCoded(error: Error): error is CodedError {
  return "code" in error && typeof error.code === "string" && "status" in error && typeof error.status === "number";
}

/** Formats an error for a reader: the code, its meaning, then its facts, one per line. */
export function describeError(error: Error): string {
  if (!isCoded(error)) return `svc: ${error.message}`;
  const facts = Object.entries(error.details ?? {}).map(([key, value]) => {
    return `\n  ${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
  });
  return `svc: ${error.code} (${error.status}): ${error.message}${facts.join("")}`;
}

/** Whether to use colour: only on a terminal whose user allows it (no-color.org: any non-empty NO_COLOR forbids it). */
export function wantsColor(stream: { isTTY?: boolean }): boolean {
  return stream.isTTY === true && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

/** Removes control characters from the text of a server or a file, because a terminal would obey them. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
