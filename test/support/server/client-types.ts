/** What openapi-typescript makes of an OpenAPI document, and what the compiler says of programs that use it. */
import { mock } from "bun:test";
import { resolve } from "node:path";

/** The text of the `.d.ts` file. */
export async function clientTypes(document: object): Promise<string> {
  // The generator builds on TypeScript's former compiler, which the current package no longer has.
  const former = await import("typescript5");
  await mock.module("typescript", () => ({ ...former, default: former.default }));
  const { default: openapiTS, astToString } = await import("openapi-typescript");
  return astToString(await openapiTS(JSON.stringify(document)));
}

/** The compiler's complaints about what stands in `folder`, one a line; `args` are its own. */
export async function compilerFaults(folder: string, args: readonly string[]): Promise<string[]> {
  const tsc = resolve(import.meta.dir, "../../../node_modules/.bin/tsc");
  const child = Bun.spawn([process.execPath, "--bun", tsc, "--noEmit", ...args], {
    cwd: folder,
    stdout: "pipe",
    env: { ...process.env, NO_COLOR: "1" },
  });
  const text = await new Response(child.stdout).text();
  await child.exited;
  return text.split("\n").filter((line) => /error TS/.test(line));
}
