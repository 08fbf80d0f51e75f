/**
 * Preloaded into a server that runs from its sources: every function says, while a trace is taken, that it was entered, and
 * by whom. SIGUSR2 begins a trace, of which `<TRACE_FILE>.begun` is the sign, and ends it: then its visits go to `TRACE_FILE`.
 */
import { renameSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { withEntries } from "./trace-entries.ts";

const ROOT = `${import.meta.dir}/../../..`;

/** A file that was entered from the visit `from`; all that this visit calls of it is one visit. */
interface Visit {
  readonly file: string;
  readonly from: Visit | undefined;
  readonly onward: Map<string, Visit>;
  readonly no: number;
}

/** A function that runs, or waits for something. */
interface Frame {
  readonly visit: Visit;
  readonly trace: Visit[];
  /** The call of a timer within which it was entered. */
  readonly timer: object | undefined;
}

let trace: Visit[] | undefined;
const outside = new Map<string, Visit>();
/** What runs just now, the innermost last. What waits for something is not in it. */
const running: Frame[] = [];
/** The call of a timer that is under way. */
let timer: object | undefined;

function visitOf(file: string, madeBy: Frame | undefined, visits: Visit[]): Visit {
  // A function that the walk has made and handed on belongs to the visit that made it: calling it is coming back there, unless
  // a timer does. What a timer begins comes from outside.
  if (madeBy?.trace === visits && (!timer || madeBy.timer === timer)) return madeBy.visit;
  const from = running.at(-1)?.visit;
  if (from?.file === file) return from;
  const onward = from?.onward ?? outside;
  const known = onward.get(file);
  if (known) return known;
  const visit: Visit = { file, from, onward: new Map(), no: visits.length };
  visits.push(visit);
  onward.set(file, visit);
  return visit;
}

function remove(frame: Frame | undefined): void {
  const at = frame ? running.lastIndexOf(frame) : -1;
  if (at >= 0) running.splice(at, 1);
}

function resume(frame: Frame | undefined): void {
  if (frame && frame.trace === trace && !running.includes(frame)) running.push(frame);
}

Object.assign(globalThis, {
  __trace: {
    enter(file: string, madeBy: Frame | undefined): Frame | undefined {
      if (!trace) return undefined;
      const frame = { visit: visitOf(file, madeBy, trace), trace, timer };
      running.push(frame);
      return frame;
    },
    leave: remove,
    /** Around what is waited for: `resume(frame, await suspend(frame, promise))`. */
    suspend<T>(frame: Frame | undefined, value: T): T {
      remove(frame);
      return value;
    },
    resume<T>(frame: Frame | undefined, value: T): T {
      resume(frame);
      return value;
    },
  },
});

const begin = globalThis.setTimeout;
globalThis.setTimeout = Object.assign(
  (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
    begin(() => {
      timer = {};
      try {
        run(...args);
      } finally {
        timer = undefined;
      }
    }, ms),
  begin,
) as typeof setTimeout;

process.on("SIGUSR2", () => {
  const path = process.env["TRACE_FILE"]!;
  if (!trace) {
    trace = [];
    outside.clear();
    running.length = 0;
    writeFileSync(`${path}.begun`, "");
    return;
  }
  const visits = trace.map(({ file, from }) => ({ file, from: from?.no ?? null }));
  trace = undefined;
  running.length = 0;
  writeFileSync(`${path}.part`, JSON.stringify(visits));
  renameSync(`${path}.part`, path);
});

Bun.plugin({
  name: "trace",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*(?<!\.d)\.ts$/ }, async ({ path }) => ({
      contents: withEntries(relative(ROOT, path), await Bun.file(path).text()),
      loader: "ts",
    }));
  },
});
