#!/usr/bin/env bun
// The executable's entry. It imports nothing heavy, so that `svc version` starts as fast as the runtime itself. It has no
// top-level await, because the executable is built as bytecode, which does not allow it.

/** Modes in which the executable is its own child process, `svc __name`. They are not commands and have no help. */
const CHILD_MODES: ReadonlyMap<string, () => Promise<number>> = new Map([
  ["__program", () => import("../src/sandbox/program-child.ts").then((m) => m.runProgramChild())],
  ["__index", () => import("../src/search/index/index-child.ts").then((m) => m.runIndexChild())],
  ["__embed", () => import("../src/search/model/embed-child.ts").then((m) => m.runEmbedChild())],
]);

async function main(tokens: readonly string[]): Promise<number> {
  const childMode = CHILD_MODES.get(tokens[0] ?? "");
  if (childMode) return childMode();
  const { runCommandLine } = await import("./dispatch.ts");
  return runCommandLine(tokens);
}

void main(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});

export {};
