/**
 * Preloaded into a server that runs from its sources: every function says, while a trace is taken, that it was entered, and
 * by whom. SIGUSR2 asks for a trace. It begins once nothing that the server does of itself is due or under way, which would be
 * seen in it too; `<TRACE_FILE>.begun` is the sign of that. SIGUSR2 ends it: then its visits go to `TRACE_FILE`.
 */
import { renameSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { withEntries } from "./trace-entries.ts";

const ROOT = `${import.meta.dir}/../../..`;
const TRACE_FILE = process.env["TRACE_FILE"]!;

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

/** What a server does of itself begins in these files. */
const OF_ITSELF = new Set(["src/sync/round-scheduler.ts"]);
/** What is due later than that lies behind a trace. */
const SOON_MS = 1_000;

let trace: Visit[] | undefined;
let isAsked = false;
/** Calls of these files that have not ended. */
const ofItself = new Set<Frame>();
/** Timers that are due soon. */
const due = new Set<ReturnType<typeof setTimeout>>();
const NO_TRACE: Visit[] = [];
const outside = new Map<string, Visit>();
/** What runs just now, the innermost last. What waits for something is not in it. */
const running: Frame[] = [];
/** The call of a timer that is under way. */
let inTimer: object | undefined;

function visitOf(file: string, madeBy: Frame | undefined, visits: Visit[]): Visit {
  // A function that the walk has made and handed on belongs to the visit that made it: calling it is coming back there, unless
  // a timer does. What a timer begins comes from outside.
  if (madeBy?.trace === visits && (!inTimer || madeBy.timer === inTimer)) return madeBy.visit;
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

function beginIfQuiet(): void {
  if (!isAsked || ofItself.size > 0 || due.size > 0) return;
  isAsked = false;
  trace = [];
  outside.clear();
  running.length = 0;
  writeFileSync(`${TRACE_FILE}.begun`, "");
}

/** Looks once what runs just now has ended, since it may ask for more. */
const lookSoon = (): void => void setImmediate(beginIfQuiet);

const setTimer = globalThis.setTimeout;
const clearTimer = globalThis.clearTimeout;
function setWatched(run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]): ReturnType<typeof setTimeout> {
  const end = (...values: unknown[]): void => {
    due.delete(timer);
    if (isAsked) lookSoon();
    inTimer = {};
    try {
      run(...values);
    } finally {
      inTimer = undefined;
    }
  };
  const timer = setTimer(end, ms, ...given);
  if (ms < SOON_MS) due.add(timer);
  return timer;
}
function clearWatched(timer: Parameters<typeof clearTimeout>[0]): void {
  if (due.delete(timer as ReturnType<typeof setTimeout>) && isAsked) lookSoon();
  clearTimer(timer);
}

Object.assign(globalThis, {
  setTimeout: setWatched,
  clearTimeout: clearWatched,
  __trace: {
    enter(file: string, madeBy: Frame | undefined): Frame | undefined {
      if (!trace) {
        if (!OF_ITSELF.has(file)) return undefined;
        const frame: Frame = {
          visit: { file, from: undefined, onward: new Map(), no: -1 },
          trace: NO_TRACE,
          timer: inTimer,
        };
        ofItself.add(frame);
        return frame;
      }
      const frame = { visit: visitOf(file, madeBy, trace), trace, timer: inTimer };
      running.push(frame);
      return frame;
    },
    leave(frame: Frame | undefined): void {
      if (frame && ofItself.delete(frame) && isAsked) lookSoon();
      remove(frame);
    },
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

process.on("SIGUSR2", () => {
  if (!trace) {
    isAsked = true;
    beginIfQuiet();
    return;
  }
  const visits = trace.map(({ file, from }) => ({ file, from: from?.no ?? null }));
  trace = undefined;
  running.length = 0;
  writeFileSync(`${TRACE_FILE}.part`, JSON.stringify(visits));
  renameSync(`${TRACE_FILE}.part`, TRACE_FILE);
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
