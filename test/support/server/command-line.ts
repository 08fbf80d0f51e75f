import { spyOn } from "bun:test";
import { commandRoot } from "../../../cli/command-root.ts";
import { runCommandLine } from "../../../cli/dispatch.ts";
import type { CommandNode } from "../../../cli/parse/command-spec.ts";

/** A request as the fake server saw it: path as sent, still percent-encoded. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly mediaType: string | null;
  readonly body: unknown;
  /** `Range` and `If-Range`, where one was sent. */
  readonly range?: string;
  readonly ifRange?: string;
}

export interface FakeServer extends Disposable {
  readonly addr: string;
  readonly seen: SeenRequest[];
}

/** A server that writes down what it is asked and answers what `answer` says. */
export function fakeServer(answer: (request: SeenRequest) => Response | Promise<Response>): FakeServer {
  const seen: SeenRequest[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const mediaType = request.headers.get("content-type");
      const text = await request.text();
      const body = text === "" ? undefined : mediaType === "application/json" ? JSON.parse(text) : text;
      const [range, ifRange] = [request.headers.get("range"), request.headers.get("if-range")];
      const conditions = { ...(range === null ? {} : { range }), ...(ifRange === null ? {} : { ifRange }) };
      const entry = { method: request.method, path: pathname, query: search.slice(1), mediaType, body, ...conditions };
      seen.push(entry);
      return answer(entry);
    },
  });
  return { addr: `127.0.0.1:${server.port}`, seen, [Symbol.dispose]: () => void server.stop(true) };
}

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process and catches what it prints. */
export async function runCli(tokens: readonly string[]): Promise<Ran> {
  const caught = { stdout: "", stderr: "" };
  const write = Bun.write as (to: unknown, data: unknown) => Promise<number>;
  const catchResults = spyOn(Bun, "write").mockImplementation((async (to: unknown, data: unknown) => {
    if (to !== Bun.stdout) return write(to, data);
    caught.stdout += typeof data === "string" ? data : new TextDecoder().decode(data as Uint8Array);
    return 0;
  }) as typeof Bun.write);
  const spies = (["stdout", "stderr"] as const).map((name) =>
    spyOn(process[name], "write").mockImplementation(((data: string | Uint8Array, done?: () => void) => {
      caught[name] += typeof data === "string" ? data : new TextDecoder().decode(data);
      done?.();
      return true;
    }) as typeof process.stdout.write),
  );
  try {
    return { exitCode: await runCommandLine(tokens), ...caught };
  } finally {
    for (const spy of [catchResults, ...spies]) spy.mockRestore();
  }
}

/** Runs the command line as a process of its own, as a shell would. */
export async function spawnCli(
  tokens: readonly string[],
  options: { stdin?: string; env?: Record<string, string> } = {},
): Promise<Ran> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/../../../cli/main.ts`, ...tokens], {
    stdin: new Blob([options.stdin ?? ""]),
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...options.env },
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

/** An event stream whose bytes are exactly `text`. */
export const streamOf = (text: string): Response =>
  new Response(text, { headers: { "content-type": "text/event-stream" } });

export const envelope = (status: number, code: string, message: string, details?: object): Response =>
  Response.json({ error: { code, message, ...(details ? { details } : {}) } }, { status });

/** Every command in the tree, as its words. */
export const commandLeaves = (): Promise<string[]> => leavesOf(commandRoot);

async function leavesOf(node: CommandNode, words: string[] = []): Promise<string[]> {
  const own = node.leaf ? [words.join(" ")] : [];
  const below = Object.entries(node.subCommands ?? {}).map(async ([word, entry]) =>
    leavesOf(typeof entry === "function" ? await entry() : entry, [...words, word]),
  );
  return [...own, ...(await Promise.all(below)).flat()];
}
