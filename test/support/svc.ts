/** Runs the command line of the freshly built executable. */
import type { Json } from "./client.ts";
import { scratchDir } from "./scratch.ts";
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
