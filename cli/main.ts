#!/usr/bin/env bun
// The executable's entry. Nothing heavy is imported here: `svc version` starts as fast as the runtime itself.

/** Modes in which the executable is its own child process, `svc __name`; they are no commands and have no help. */
const CHILD_MODES: Readonly<Record<string, () => Promise<void>>> = {};

const tokens = process.argv.slice(2);
const childMode = CHILD_MODES[tokens[0] ?? ""];
if (childMode) {
  await childMode();
} else {
  const { runCommandLine } = await import("./dispatch.ts");
  process.exitCode = await runCommandLine(tokens);
}

export {};
