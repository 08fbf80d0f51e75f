import { runCommand } from "citty";
import { cittyCommand, type LineState, sealFlags } from "./citty-command.ts";
import { commandRoot } from "./command-root.ts";
import { CliError, EXIT, type ExitCode, exitCodeOfStatus } from "./io/exit.ts";
import { describeError, isCoded, say } from "./io/output.ts";

/** Runs one command line and resolves to its exit code. */
export async function runCommandLine(tokens: readonly string[]): Promise<ExitCode> {
  const { rawArgs, sealed } = sealFlags(spelledOut(tokens));
  const line: LineState = { sealed, before: [], exitCode: undefined };
  try {
    await runCommand(cittyCommand(commandRoot, ["svc"], line), { rawArgs });
    return line.exitCode ?? EXIT.ok;
  } catch (error) {
    return explain(error as Error);
  }
}

/** Rewrites `svc help …`, `svc --version` and `svc -v` to the equivalent words. */
function spelledOut(tokens: readonly string[]): string[] {
  const [first, ...rest] = tokens;
  if (first === "help") return [...rest, "--help"];
  if (rest.length === 0 && (first === "--version" || first === "-v")) return ["version"];
  return [...tokens];
}

function explain(error: Error): ExitCode {
  say(describeError(error));
  if (error instanceof CliError) return error.exitCode;
  return isCoded(error) ? exitCodeOfStatus(error.status) : EXIT.user;
}
