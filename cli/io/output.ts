let stdoutWatched = false;

/**
 * Writes data to stdout and resolves once it has been handed to the system, so that a consumer sees every frame as it
 * comes and a slow one holds the producer up. Resolves to false when nobody reads any more (`svc … | head -1`).
 */
export function writeOut(data: string | Uint8Array): Promise<boolean> {
  // The callback below tells of a failure; the event beside it would end the process if nobody listened.
  if (!stdoutWatched) process.stdout.on("error", () => undefined);
  stdoutWatched = true;
  return new Promise((resolve, reject) => {
    process.stdout.write(data, (error) => {
      if (!error) resolve(true);
      else if ((error as NodeJS.ErrnoException).code === "EPIPE") resolve(false);
      else reject(error);
    });
  });
}

/** A result for people and programs alike: pretty-printed JSON. */
export const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Talk, progress and errors: everything that is not data. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** What the server's errors and those of the engine (`svc run`, `svc init`) have in common. */
interface CodedError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details?: Record<string, unknown>;
}

export function isCoded(error: Error): error is CodedError {
  return "code" in error && typeof error.code === "string" && "status" in error && typeof error.status === "number";
}

/** An error as a reader wants it: the code, what it means, then its facts, one a line. */
export function describeError(error: Error): string {
  if (!isCoded(error)) return `svc: ${error.message}`;
  const facts = Object.entries(error.details ?? {}).map(([key, value]) => {
    return `\n  ${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
  });
  return `svc: ${error.code} (${error.status}): ${error.message}${facts.join("")}`;
}

/** Colour only for a terminal whose owner wants it (no-color.org: any non-empty NO_COLOR says no). */
export function wantsColor(stream: { isTTY?: boolean }): boolean {
  return stream.isTTY === true && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

/** What a server or a file said may hold control characters; a terminal must not obey them. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
