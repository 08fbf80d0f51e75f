import type { Json } from "../../src/protocol/json.ts";
import { UsageError } from "./exit.ts";

/** Reads the inputs that flags name: JSON on the command line, a file, or stdin. Only one flag may use stdin. */
export interface InputReader {
  /** JSON on the command line, in `@FILE`, or on stdin (`-`). `label` is the flag, for messages. */
  json(label: string, text: string): Promise<Json>;
  /** JSON in the file at `path`, or on stdin (`-`). */
  jsonFile(label: string, path: string): Promise<Json>;
  /** The bytes of a text on the command line, of `@FILE`, or of stdin (`-`), as they come. */
  chunks(label: string, text: string): AsyncIterable<Uint8Array>;
  /** The first lines of stdin, one per label, without line ends: secrets that must not appear in arguments. */
  secretLines(labels: readonly string[]): Promise<string[]>;
  /** Reserves stdin for bytes that the caller streams itself. */
  claimStdin(label: string): void;
}

export function createInputReader(readStdin: () => Promise<string> = () => Bun.stdin.text()): InputReader {
  let stdinUser: string | undefined;

  function claimStdin(label: string): void {
    if (stdinUser) throw new UsageError(`${stdinUser} and ${label} both read stdin; only one may`);
    stdinUser = label;
  }
  function stdin(label: string): Promise<string> {
    claimStdin(label);
    return readStdin();
  }

  return {
    claimStdin,
    async json(label, text) {
      if (text === "-") return parseJson(`${label} (stdin)`, await stdin(label));
      if (text.startsWith("@")) return parseJson(`${label} (${text})`, await readFileText(label, text.slice(1)));
      return parseJson(label, text);
    },
    async jsonFile(label, path) {
      if (path === "-") return parseJson(`${label} (stdin)`, await stdin(label));
      return parseJson(`${label} (${path})`, await readFileText(label, path));
    },
    async *chunks(label, text) {
      if (text === "-") {
        claimStdin(label);
        yield* Bun.stdin.stream();
      } else if (text.startsWith("@")) yield* fileChunks(label, text.slice(1));
      else yield new TextEncoder().encode(text);
    },
    async secretLines(labels) {
      const lines = (await stdin(labels.join(" and "))).split(/\r?\n/);
      return labels.map((label, index) => {
        const line = lines[index];
        if (!line) throw new UsageError(`${label} found no line ${index + 1} on stdin`);
        return line;
      });
    },
  };
}

async function readFileText(label: string, path: string): Promise<string> {
  try {
    return await Bun.file(path).text();
  } catch (error) {
    throw new UsageError(`${label} cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

async function* fileChunks(label: string, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* Bun.file(path).stream();
  } catch (error) {
    throw new UsageError(`${label} cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

/** Parses JSON and refuses what cannot be sent to the API; `label` names it in the error. */
export function parseJson(label: string, text: string): Json {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw new UsageError(`${label} is not valid JSON: ${(error as Error).message}`);
  }
  if (holdsInfinity(value)) throw new UsageError(`${label} holds a number beyond ±${Number.MAX_VALUE}`);
  return value;
}

/** Whether a number is beyond a double; JSON would send it as null. */
function holdsInfinity(value: Json): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  return (
    typeof value === "object" && value !== null && Object.values(value).some((part) => holdsInfinity(part as Json))
  );
}
