import { constants } from "node:os";
import { giveWay } from "../base/give-way.ts";
import { readEngine } from "./engine-wasm.ts";
import { GUEST_EPILOGUE } from "./guest-prelude.ts";
import { readJsonLines, toJsonLine } from "./json-lines.ts";
import { MESSAGE_BYTES } from "./program-limits.ts";
import type { FromChild, ProgramStart, ToChild } from "./program-protocol.ts";
import { hashOf } from "./program-trace.ts";
import { createInterpreter, type Interpreter, type RunningProgram, startProgram } from "./program-vm.ts";
import { withMaxPages } from "./wasm-memory.ts";

/**
 * Runs programs one after the other for the server that started this process. It ends when the server's end of the pipe
 * closes. While a program loops, it checks once per slice of fuel whether the server is gone.
 */
export async function runProgramChild(): Promise<never> {
  giveWay(constants.priority.PRIORITY_BELOW_NORMAL);
  const parent = process.ppid;
  const send = (message: FromChild): void => void process.stdout.write(toJsonLine(message));
  const engine = await readEngine();
  const interpreters = createInterpreters(engine);

  let running: RunningProgram | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const start = async (request: ProgramStart): Promise<void> => {
    const interpreter = await interpreters.take(request.maxPages);
    timer = setTimeout(() => running?.stop("timeout"), request.timeoutMs);
    let ended = false;
    const started = startProgram({
      interpreter,
      start: request,
      elapsedMs: () => performance.now(),
      abandoned: () => process.ppid !== parent,
      onCall: (call) => send({ call }),
      onEnd: (end) => {
        ended = true;
        clearTimeout(timer);
        running = undefined;
        send({ end });
        interpreters.prepare(request.maxPages);
      },
    });
    running = ended ? undefined : started;
  };

  send({ ready: engineHash(engine) });
  for await (const message of readJsonLines<ToChild>(Bun.stdin.stream(), MESSAGE_BYTES)) {
    if ("start" in message) await start(message.start);
    else running?.settle(message.settle);
  }
  // The server is gone, so nobody waits for the run, and its timer would keep this process alive for minutes.
  process.exit(0);
}

/** Interpreters, each for one program. While nobody waits, the next one is prepared. */
function createInterpreters(engine: Uint8Array) {
  const modules = new Map<number, Promise<WebAssembly.Module>>();
  let ready: { readonly maxPages: number; readonly made: Promise<Interpreter> } | undefined;
  const make = async (maxPages: number): Promise<Interpreter> => {
    const module = modules.get(maxPages) ?? WebAssembly.compile(withMaxPages(engine, maxPages) as BufferSource);
    modules.set(maxPages, module);
    return createInterpreter(await module, maxPages);
  };
  return {
    take(maxPages: number): Promise<Interpreter> {
      const made = ready?.maxPages === maxPages ? ready.made : make(maxPages);
      ready = undefined;
      return made;
    },
    prepare(maxPages: number): void {
      setImmediate(() => {
        ready ??= { maxPages, made: make(maxPages) };
      });
    },
  };
}

/** What a run's fuel depends on besides the program: the interpreter with the host API, and the code after the source. */
function engineHash(engine: Uint8Array): string {
  return hashOf(`${hashOf(engine)}\n${GUEST_EPILOGUE}`);
}
