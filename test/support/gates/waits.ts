/**
 * Fixed waits in tests: to sleep and then look says nothing where the machine is slow, and costs its time where it is fast.
 * What a test waits for is a condition (`until`); what goes on beside it takes its time by `pace`. A turn of the event loop
 * (`sleep(0)`) and a loop on one line that polls a condition without a clock are allowed. What helps tests runs processes and
 * networks, so it has deadlines and polls of its own; to wait and look right behind it is one no less.
 */
import { join } from "node:path";

const WAIT = /\b(?:Bun\.sleep(?:Sync)?|setTimeout)\((?!0\))/;
/** Brings a wait of its own under another name. */
const TIMERS = /["'](?:node:)?timers(?:\/promises)?["']/;
const POLL = /^while \((?!.*\b(?:now\(|Date\b)).*\) await Bun\.sleep\(\d+\);$/;
/** What goes on beside a test takes its time by this; to look right behind it is a fixed wait all the same. */
const PACE = /\bpace\(/;
const LOOK = /^(?:await )?expect\(/;
const TEST_FILE = /\.test\.tsx?$/;
/** Its tests are written out as texts, for runs of their own that fail and hang. */
const WRITES_TESTS = "test/support/suite/run-suite.test.ts";

/** `path:line: text` of each fixed wait in these sources, by path. */
export function findWaits(sourcesByPath: ReadonlyMap<string, string>): string[] {
  return [...sourcesByPath].flatMap(([path, source]) =>
    path === WRITES_TESTS
      ? []
      : source
          .split("\n")
          .map((line) => line.trim())
          .flatMap((line, index, lines) =>
            waitsToLook(line, lines[index + 1]) || (TEST_FILE.test(path) && isWait(line))
              ? `${path}:${index + 1}: ${line}`
              : [],
          ),
  );
}

function isWait(line: string): boolean {
  return TIMERS.test(line) || (WAIT.test(line) && !POLL.test(line));
}

function waitsToLook(line: string, next = ""): boolean {
  return (PACE.test(line) || (WAIT.test(line) && !POLL.test(line))) && LOOK.test(next);
}

/** The tests, and what helps them. */
export async function readTests(root: string): Promise<Map<string, string>> {
  const patterns = ["{src,cli,ui,test}/**/*.test.{ts,tsx}", "test/support/**/*.ts"];
  const found = await Promise.all(patterns.map((each) => Array.fromAsync(new Bun.Glob(each).scan({ cwd: root }))));
  const paths = [...new Set(found.flat())].filter((path) => !path.startsWith("test/support/gates/waits")).sort();
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
  );
}
