import { EvalFlags, JSException, type JSValueHandle, QuickJS } from "quickjs-wasi";
import { type EngineState, HOST_CALL, HOST_DONE, readEngineState } from "./engine-image.ts";
import { GUEST_EPILOGUE } from "./guest-prelude.ts";
import { createFuel, type Fuel, RunStopped } from "./program-fuel.ts";
import { PAGE_BYTES, PROGRAM_LIMITS } from "./program-limits.ts";
import {
  type CallSettled,
  LOG_CALL,
  type ProgramCall,
  type ProgramEnd,
  type ProgramStart,
} from "./program-protocol.ts";
import { FUEL_GLOBAL, FUEL_HOOK, FUEL_HOOK_ARGUMENT } from "./wasm-meter.ts";

/** A running program. Each run has its own wasm instance, so nothing of it is left for the next. */
export interface RunningProgram {
  /** Answers a call and continues the program. Does nothing once the program has ended. */
  settle(answer: CallSettled): void;
  /** Ends the program from outside, while it waits. */
  stop(status: "timeout"): void;
}

/** An interpreter that has not started its program yet. */
export interface Interpreter {
  readonly vm: QuickJS;
  readonly state: EngineState;
  /** The clock, random numbers and fuel of its world; they become the program's once it starts. */
  readonly world: { nowNs: bigint; random: (target: Uint8Array) => void; fuel: Fuel | undefined };
}

export interface ProgramVmDeps {
  readonly interpreter: Interpreter;
  readonly start: ProgramStart;
  readonly onCall: (call: ProgramCall) => void;
  readonly onEnd: (end: ProgramEnd) => void;
  /** Milliseconds of a monotonic clock. */
  readonly elapsedMs: () => number;
  /** Called once per slice: whether to give up the run because nobody waits for it any more. */
  readonly abandoned?: () => boolean;
}

const MAX_STACK_BYTES = 256 * 1024;
const MAX_ERROR_CHARS = 2000;
/** Limits per run: each call takes memory in the host too. */
const { callsAtOnce, callsPerRun, callBytes, logChars } = PROGRAM_LIMITS;

/** Starts a program and runs it until it first waits or ends. */
export function startProgram(deps: ProgramVmDeps): RunningProgram {
  const { start, onCall, onEnd } = deps;
  const { vm, state, world } = deps.interpreter;
  const fuel = createFuel({
    budget: start.fuel,
    deadlineMs: deps.elapsedMs() + start.timeoutMs,
    elapsedMs: deps.elapsedMs,
    abandoned: deps.abandoned ?? (() => false),
  });
  world.nowNs = BigInt(start.nowMs) * 1_000_000n;
  world.random = createRandomBytes(start.seed);
  world.fuel = fuel;
  new DataView(memoryOf(vm).buffer).setBigUint64(state.seedAt, seedOf(start.seed), true);
  fuel.attach(exportsOf(vm)[FUEL_GLOBAL] as WebAssembly.Global);
  const open = new Set<number>();
  let calls = 0;
  let logged = 0;
  let ended = false;
  let settleCall: JSValueHandle | undefined;

  const finish = (end: Pick<ProgramEnd, "status" | "value" | "error">): void => {
    if (ended) return;
    ended = true;
    onEnd({ ...end, fuel: fuel.used(), memPages: memoryOf(vm).buffer.byteLength / PAGE_BYTES });
  };
  /** Runs one step inside the interpreter; whatever stops the program or breaks the engine ends the run. */
  const step = (work: () => void): void => {
    if (ended) return;
    try {
      work();
      vm.executePendingJobs();
      if (!ended && open.size === 0)
        finish({ status: "failed", error: "the program waits for something that can never come" });
    } catch (thrown) {
      finish(endOf(thrown, fuel));
    }
  };

  const hostCall = (numberHandle: JSValueHandle, nameHandle: JSValueHandle, inputHandle: JSValueHandle) => {
    const name = nameHandle.toString();
    const input = inputHandle.toString();
    if (input.length > callBytes) throw refusal(`${name} was given more than ${callBytes >> 20} MiB`);
    if (++calls > callsPerRun) throw refusal(`a run may call the host ${callsPerRun} times`);
    const n = numberHandle.toNumber();
    // Nothing waits for the log, so all of its text may go to the host at once.
    if (name === LOG_CALL) {
      logged += input.length;
      if (logged > logChars) throw refusal(`a run may log ${logChars >> 20} MiB`);
    } else {
      if (open.size >= callsAtOnce) throw refusal(`${callsAtOnce} calls are under way; wait for some`);
      open.add(n);
    }
    onCall({ n, name, input });
    return vm.undefined;
  };
  const hostDone = (okHandle: JSValueHandle, textHandle: JSValueHandle) => {
    const text = textHandle.toString();
    if (!okHandle.toBoolean()) finish(failureOf(text));
    else if (text.length > callBytes)
      finish({ status: "failed", error: `the program returned more than ${callBytes >> 20} MiB` });
    else finish({ status: "ok", value: text });
    return vm.undefined;
  };

  step(() => {
    vm.registerHostCallback(HOST_CALL, hostCall as never);
    vm.registerHostCallback(HOST_DONE, hostDone as never);
    settleCall = vm.importHandle(state.settle);
    runProgram(vm, state, start);
  });
  return {
    settle(answer) {
      if (!open.delete(answer.n)) return;
      world.nowNs = BigInt(answer.nowMs) * 1_000_000n;
      step(() => deliver(vm, settleCall as JSValueHandle, answer));
    },
    stop: (status) => finish({ status, error: "the run took longer than it may" }),
  };
}

/** Makes an interpreter from the metered, started engine, with its memory limit. Each serves one program. */
export async function createInterpreter(module: WebAssembly.Module, maxPages: number): Promise<Interpreter> {
  const state = readEngineState(module);
  const world: Interpreter["world"] = { nowNs: 0n, random: createRandomBytes(0), fuel: undefined };
  // The memory is in the module, so there is nothing to copy.
  const snapshot = { ...state, memory: new Uint8Array(0), extensions: [] };
  const vm = await QuickJS.restore(snapshot, {
    wasm: module,
    memoryLimit: maxPages * PAGE_BYTES,
    maxStackSize: MAX_STACK_BYTES,
    timezoneOffset: 0,
    onUnhandledRejection: () => {},
    wasi: (memory) => ({
      clock_time_get(_clock: number, _precision: bigint, at: number) {
        new DataView(memory.buffer).setBigUint64(at, world.nowNs, true);
        return 0;
      },
      random_get(at: number, size: number) {
        world.random(new Uint8Array(memory.buffer, at, size));
        return 0;
      },
      fd_write: () => 8, // a program has no files
      [FUEL_HOOK](argument: number) {
        if (argument === FUEL_HOOK_ARGUMENT) world.fuel?.refill();
        return 8;
      },
    }),
  });
  return { vm, state, world };
}

function runProgram(vm: QuickJS, { run: token }: EngineState, start: ProgramStart): void {
  using run = vm.importHandle(token);
  using loaded = vm.evalCode(start.source + GUEST_EPILOGUE, "program.js", EvalFlags.TYPE_MODULE);
  using args = vm.newString(start.args);
  using context = vm.newString(start.context);
  vm.callFunction(run, vm.undefined, loaded, args, context).dispose();
}

function deliver(vm: QuickJS, settle: JSValueHandle, { n, output, error }: CallSettled): void {
  using number = vm.newNumber(n);
  using text = vm.newString(error === undefined ? (output ?? "") : JSON.stringify(error));
  vm.callFunction(settle, vm.undefined, number, error === undefined ? vm.true : vm.false, text).dispose();
}

/** Makes an error for the program that does not reveal where in the host it was made. */
function refusal(message: string): Error {
  const error = new Error(message);
  error.stack = "";
  return error;
}

/** How a run ended when something was thrown: by the fuel, the clock, the program, or a fault of the engine. */
function endOf(thrown: unknown, fuel: Fuel): Pick<ProgramEnd, "status" | "error"> {
  const stopped = fuel.stopped() ?? (thrown instanceof RunStopped ? thrown : undefined);
  if (stopped) return { status: stopped.status, error: stopped.message };
  if (thrown instanceof JSException) return failureOfHead(`${thrown.name}: ${thrown.message}`, "");
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (/out of memory|malloc failed/i.test(message)) return { status: "memory_exhausted", error: OUT_OF_MEMORY };
  return { status: "failed", error: `the interpreter gave up: ${message}`.slice(0, MAX_ERROR_CHARS) };
}

const OUT_OF_MEMORY = "the program used more memory than it may";

function failureOf(json: string): Pick<ProgramEnd, "status" | "error"> {
  const { head, code, stack } = JSON.parse(json) as { head: string; code: string; stack: string };
  return failureOfHead(code === "" ? head : `${head} (${code})`, stack);
}

function failureOfHead(head: string, stack: string): Pick<ProgramEnd, "status" | "error"> {
  if (head.startsWith("InternalError: out of memory")) return { status: "memory_exhausted", error: OUT_OF_MEMORY };
  return { status: "failed", error: `${head}\n${stack}`.trim().slice(0, MAX_ERROR_CHARS) };
}

/** Spreads the seed over 64 bits. It is never 0, because the interpreter's generator could not leave 0. */
function seedOf(seed: number): bigint {
  return BigInt.asUintN(64, (BigInt(seed) + 1n) * 0x9e37_79b9_7f4a_7c15n);
}

/** xorshift32 for everything that asks for random bytes: the same seed gives the same bytes. */
function createRandomBytes(seed: number): (target: Uint8Array) => void {
  let state = seed | 1;
  return (target) => {
    for (let index = 0; index < target.length; index++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      target[index] = state & 255;
    }
  };
}

/** The instance's exports, which the library keeps private. */
function exportsOf(vm: QuickJS): Record<string, unknown> {
  return (vm as unknown as { exports: Record<string, unknown> }).exports;
}

function memoryOf(vm: QuickJS): WebAssembly.Memory {
  return exportsOf(vm)["memory"] as WebAssembly.Memory;
}
