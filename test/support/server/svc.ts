/** Runs the command line of the freshly built executable. */

import { scratchDir } from "../scratch.ts";
import type { Json } from "./client.ts";
import { BINARY, childEnv } from "./server.ts";

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
  /** stdout as JSON; throws when it is anything else. */
  json(): Json;
}
export interface RunOptions {
  /** Passed as `--addr`. */
  addr?: string;
  env?: Record<string, string>;
  stdin?: string;
  home?: string;
  timeoutMs?: number;
}

export async function svc(args: string[], options: RunOptions = {}): Promise<Ran> {
  using home = scratchDir("svc-cli-home");
  const words = options.addr === undefined ? args : ["--addr", options.addr, ...args];
  const child = Bun.spawn([BINARY, ...words], {
    cwd: home.path,
    env: childEnv(options.home ?? home.path, options.env),
    stdin: options.stdin === undefined ? "ignore" : Buffer.from(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 20_000);
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  clearTimeout(timer);
  return {
    code: child.exitCode,
    stdout,
    stderr,
    json: () => {
      try {
        return JSON.parse(stdout) as Json;
      } catch {
        throw new Error(`svc ${words.join(" ")}: stdout is no JSON (exit ${child.exitCode})\n${stdout}\n${stderr}`);
      }
    },
  };
}

export interface CliFrame {
  event: string;
  data: Json;
}

/** Runs a streaming command until a frame satisfies `until`, then ends it. Throws if the command ends before that. */
export async function svcFrames(
  args: string[],
  options: { addr: string; until: (frame: CliFrame) => boolean; timeoutMs?: number },
): Promise<CliFrame[]> {
  using home = scratchDir("svc-cli-home");
  const child = Bun.spawn([BINARY, "--addr", options.addr, ...args], {
    cwd: home.path,
    env: childEnv(home.path),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 20_000);
  const stderr = new Response(child.stderr).text();
  const frames: CliFrame[] = [];
  let text = "";
  try {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      frames.push(...lines.filter((line) => line !== "").map((line) => JSON.parse(line) as CliFrame));
      if (frames.some(options.until)) return frames;
    }
    throw new Error(`svc ${args.join(" ")} ended with ${frames.length} frames\n${await stderr}`);
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
    await child.exited;
  }
}
