/**
 * Manages child processes of the same executable that answer requests. A child starts when it is needed and ends when it is not.
 */
import { childCommand } from "../base/child-command.ts";
import type { Log } from "../base/log.ts";
import { type ErrorCode, type ErrorDetails, SvcError, svcError } from "../protocol/errors.ts";
import { failureElsewhere, storageFault } from "../protocol/storage-fault.ts";

/** The messages that every child may send besides its own reports. */
export type ChildAnswer =
  | { readonly kind: "reply"; readonly id: number; readonly result: unknown }
  | {
      readonly kind: "failed";
      readonly id: number;
      readonly code: string;
      readonly message: string;
      readonly details?: object;
      readonly stack: string;
      /** The name of the fault, where the cause is a disk or a file. */
      readonly fault?: string | undefined;
    }
  | {
      readonly kind: "log";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly message: string;
      readonly fields: Record<string, unknown>;
    };

/** Nobody answers, because the child died, was ended, or could not be started. The caller may send the request again. */
export class ChildLost extends Error {}

export interface ChildClient<Request extends object> {
  /** Sends a request for which nobody waits. */
  send(request: Request): void;
  /** Resolves with the answer. Rejects with the error that the child reports, or with ChildLost when the child is gone. */
  ask<T>(request: Request): Promise<T>;
  /** Ends the child after its current work, which frees its memory; it starts again when it is needed. */
  rest(): Promise<void>;
  /** Ends the child at once, whatever it is doing; it starts again when it is needed. */
  kill(): void;
  readonly pid: number | undefined;
  close(): Promise<void>;
}

interface ChildClientDeps<Report> {
  /** The command-line argument that makes the executable run as this child. */
  readonly mode: `__${string}`;
  readonly log: Log;
  readonly idleMs: number;
  readonly env?: Readonly<Record<string, string>>;
  onReport?(report: Report): void;
  /** Called when a child ended that this client did not end. */
  onLost?(): void;
}

interface Waiting {
  resolve(result: never): void;
  reject(error: unknown): void;
}

interface Running {
  readonly process: Bun.Subprocess;
  readonly waiting: Map<number, Waiting>;
  ended: boolean;
}

/** How long a child that is told to end may take before it is killed. */
const END_MS = 3_000;

export function createChildClient<Request extends object, Report extends { readonly kind: string }>(
  deps: ChildClientDeps<Report>,
): ChildClient<Request> {
  const { log } = deps;
  let running: Running | undefined;
  let lastId = 0;
  let closed = false;
  let idle: ReturnType<typeof setTimeout> | undefined;

  const start = (): Running => {
    const { PATH = "", HOME = "", TMPDIR } = process.env;
    const child = Bun.spawn(childCommand(deps.mode), {
      stdio: ["ignore", "ignore", "inherit"],
      env: { PATH, HOME, ...(TMPDIR === undefined ? {} : { TMPDIR }), ...deps.env },
      serialization: "advanced",
      ipc: (message) => take(one, message as ChildAnswer | Report),
      onExit: (_child, code, signal) => lose(one, `code ${code}, signal ${signal}`),
    });
    child.unref();
    const one: Running = { process: child, waiting: new Map(), ended: false };
    return one;
  };

  const lose = (one: Running, how: string): void => {
    if (running === one) running = undefined;
    for (const each of one.waiting.values()) each.reject(new ChildLost(`the process ${deps.mode} ended (${how})`));
    one.waiting.clear();
    if (one.ended) return;
    log.warn("a process of the server's own was lost; it starts again when it is needed", { mode: deps.mode, how });
    deps.onLost?.();
  };

  const take = (one: Running, message: ChildAnswer | Report): void => {
    stayAwake();
    if (isLog(message)) log[message.level](message.message, message.fields);
    else if (isReply(message)) takeWaiting(one, message.id)?.resolve(message.result as never);
    else if (isFailure(message)) takeWaiting(one, message.id)?.reject(errorOf(message));
    else deps.onReport?.(message as Report);
  };

  const post = (request: Request & { id?: number }): Running => {
    stayAwake();
    running ??= start();
    try {
      running.process.send(request);
    } catch {
      running = start(); // it was killed, and the exit event arrives only a moment later
      running.process.send(request);
    }
    return running;
  };

  const stayAwake = (): void => {
    clearTimeout(idle);
    if (closed) return;
    idle = setTimeout(() => {
      if (running?.waiting.size === 0) void end(running);
    }, deps.idleMs);
    idle.unref();
  };

  const end = async (one: Running): Promise<void> => {
    one.ended = true;
    if (running === one) running = undefined;
    // The child ends when its side of the channel closes, after its current work.
    one.process.disconnect();
    const timer = setTimeout(() => one.process.kill("SIGKILL"), END_MS);
    await one.process.exited;
    clearTimeout(timer);
  };

  return {
    send: (request) => {
      if (!closed) post(request);
    },
    ask<T>(request: Request): Promise<T> {
      if (closed) return Promise.reject(svcError("server.unavailable"));
      const id = ++lastId;
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      try {
        post({ ...request, id }).waiting.set(id, { resolve, reject });
      } catch (error) {
        reject(new ChildLost(`the process ${deps.mode} could not be started`, { cause: error }));
      }
      return promise;
    },
    async rest() {
      if (running?.waiting.size === 0) await end(running);
    },
    kill: () => running?.process.kill("SIGKILL"),
    get pid() {
      return running?.process.pid;
    },
    async close() {
      closed = true;
      clearTimeout(idle);
      if (running) await end(running);
    },
  };
}

function takeWaiting(one: Running, id: number): Waiting | undefined {
  const found = one.waiting.get(id);
  one.waiting.delete(id);
  return found;
}

const isLog = (message: { kind: string }): message is Extract<ChildAnswer, { kind: "log" }> => message.kind === "log";
const isReply = (message: { kind: string }): message is Extract<ChildAnswer, { kind: "reply" }> =>
  message.kind === "reply";
const isFailure = (message: { kind: string }): message is Extract<ChildAnswer, { kind: "failed" }> =>
  message.kind === "failed";

function errorOf({ code, message, details, stack, fault }: Extract<ChildAnswer, { kind: "failed" }>): Error {
  if (code === "internal") return failureElsewhere({ message, stack, fault });
  return new SvcError(code as ErrorCode, { message, ...(details ? { details: details as ErrorDetails } : {}) });
}

/** Sends a message to the server that started this process. */
export function sendToParent(message: ChildAnswer | { readonly kind: string }): void {
  process.send?.(message);
}

/** Builds the answer to a request that failed. */
export function failureOf(id: number, error: unknown): Extract<ChildAnswer, { kind: "failed" }> {
  const known = error instanceof SvcError ? error : undefined;
  return {
    kind: "failed",
    id,
    code: known?.code ?? "internal",
    fault: storageFault(error)?.code,
    message: error instanceof Error ? error.message : String(error),
    ...(known?.details ? { details: known.details } : {}),
    stack: error instanceof Error ? (error.stack ?? "") : "",
  };
}
