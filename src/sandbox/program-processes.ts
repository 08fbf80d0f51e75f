import type { Log } from "../base/log.ts";
import { createTurns } from "../base/turns.ts";
import { readJsonLines, toJsonLine } from "./json-lines.ts";
import { MESSAGE_BYTES } from "./program-limits.ts";
import {
  type CallError,
  type FromChild,
  LOG_CALL,
  type ProgramCall,
  type ProgramEnd,
  type ProgramStart,
  type ToChild,
} from "./program-protocol.ts";

/** The outcome of a program's call. */
export type CallOutcome = { readonly output: string } | { readonly error: CallError };

interface ProgramRun {
  readonly start: ProgramStart;
  /** Answers a call; the program gets answers in the order in which they are ready. */
  call(call: ProgramCall): Promise<CallOutcome & { readonly nowMs?: number }>;
  /** Called for each answer before the program gets it, with the time that the program's clock will show. */
  onSettled?(call: ProgramCall, outcome: CallOutcome, nowMs: number): void;
  /** Ends the run at once. */
  readonly signal: AbortSignal;
}

/** The end of a run. `lost`: its process was killed or died, so what it used is not known. */
export type RunEnd = (ProgramEnd & { readonly engine: string }) | { readonly status: "lost"; readonly error: string };

/**
 * A limited number of processes that run programs: started when needed, kept for a while, killed when they do not answer.
 */
export interface ProgramProcesses {
  run(run: ProgramRun): Promise<RunEnd>;
  close(): Promise<void>;
}

export interface ProgramProcessesDeps {
  /** The command line of a child. */
  readonly command: readonly string[];
  readonly log: Log;
  readonly nowMs: () => number;
  /** How long a child without work is kept. */
  readonly idleMs?: number;
  /** How long a run may exceed its time before its process is killed. */
  readonly graceMs?: number;
}

interface Child {
  send(message: ToChild): void;
  /** Receives the child's messages; absent while the child is free. */
  listener: ((message: FromChild) => void) | undefined;
  onExit: (() => void) | undefined;
  kill(): void;
  readonly exited: Promise<unknown>;
  idleTimer?: ReturnType<typeof setTimeout>;
  /** SHA-256 of its interpreter, once the child has reported it. */
  engine: string;
}

const IDLE_MS = 60_000;
const GRACE_MS = 3_000;

export function createProgramProcesses(deps: ProgramProcessesDeps): ProgramProcesses {
  const { idleMs = IDLE_MS, graceMs = GRACE_MS } = deps;
  const free: Child[] = [];
  const all = new Set<Child>();
  const turns = createTurns();
  let closed = false;

  const spawn = (): Child => {
    const { BUN_BE_BUN: _, ...env } = process.env;
    const spawned = Bun.spawn([...deps.command], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
      // A program needs nothing else from the environment, which may hold secrets.
      env: { PATH: env["PATH"] ?? "", HOME: env["HOME"] ?? "" },
    });
    const child: Child = {
      send: (message) => {
        // A child that is gone is noticed by its exit; messages on their way to it are lost.
        const swallow = (written: number | Promise<number>) => void Promise.resolve(written).catch(() => {});
        swallow(spawned.stdin.write(toJsonLine(message)));
        swallow(spawned.stdin.flush());
      },
      listener: undefined,
      onExit: undefined,
      kill: () => spawned.kill("SIGKILL"),
      exited: spawned.exited,
      engine: "",
    };
    all.add(child);
    const listen = async (): Promise<void> => {
      for await (const message of readJsonLines<FromChild>(spawned.stdout, MESSAGE_BYTES)) {
        if ("ready" in message) child.engine = message.ready;
        else {
          await turns.turn();
          child.listener?.(message);
        }
      }
    };
    void listen()
      .catch((error: unknown) => {
        deps.log.warn("a process that runs programs said what cannot be read", { err: error });
        child.kill();
      })
      .then(() => spawned.exited)
      .finally(() => {
        all.delete(child);
        clearTimeout(child.idleTimer);
        const at = free.indexOf(child);
        if (at >= 0) free.splice(at, 1);
        child.onExit?.();
      });
    return child;
  };
  const take = (): Child => {
    const child = free.pop() ?? spawn();
    clearTimeout(child.idleTimer);
    return child;
  };
  const giveBack = (child: Child): void => {
    child.listener = undefined;
    child.onExit = undefined;
    if (closed || !all.has(child)) {
      child.kill();
      return;
    }
    free.push(child);
    child.idleTimer = setTimeout(() => child.kill(), idleMs);
    child.idleTimer.unref();
  };

  const runOn = (child: Child, { start, call, onSettled, signal }: ProgramRun): Promise<RunEnd> => {
    const { promise, resolve } = Promise.withResolvers<RunEnd>();
    let over = false;
    const finish = (end: RunEnd, reusable: boolean): void => {
      if (over) return;
      over = true;
      clearTimeout(deadline);
      signal.removeEventListener("abort", onAbort);
      if (reusable) giveBack(child);
      else child.kill();
      resolve(end);
    };
    const lose = (error: string) => finish({ status: "lost", error }, false);
    const onAbort = () => lose("the run was ended from outside");
    const deadline = setTimeout(() => {
      finish(
        {
          status: "timeout",
          error: "the run took longer than it may",
          fuel: start.fuel,
          memPages: start.maxPages,
          engine: child.engine,
        },
        false,
      );
    }, start.timeoutMs + graceMs);
    child.onExit = () => lose("the process that ran the program ended");
    child.listener = (message) => {
      if ("call" in message) {
        void answer(message.call, call).then((outcome) => {
          if (over) return;
          const nowMs = outcome.nowMs ?? deps.nowMs();
          onSettled?.(message.call, outcome, nowMs);
          if (message.call.name !== LOG_CALL) child.send({ settle: { n: message.call.n, ...outcome, nowMs } });
        });
      } else if ("end" in message) finish({ ...message.end, engine: child.engine }, true);
    };
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else child.send({ start });
    return promise;
  };

  return {
    async run(run) {
      if (closed) return { status: "lost", error: "the server is stopping" };
      return runOn(take(), run);
    },
    async close() {
      closed = true;
      const children = [...all];
      for (const child of children) child.kill();
      await Promise.all(children.map((child) => child.exited));
    },
  };
}

/** A call never ends a run: when its answering function throws, the program learns only that the call failed. */
async function answer(call: ProgramCall, by: ProgramRun["call"]): ReturnType<ProgramRun["call"]> {
  try {
    return await by(call);
  } catch {
    return { error: { code: "internal", message: "the call failed for a reason of the server's own" } };
  }
}
