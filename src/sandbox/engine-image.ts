import { Intrinsics, QuickJS } from "quickjs-wasi";
import { GUEST_PRELUDE } from "./guest-prelude.ts";
import { withImage } from "./wasm-memory.ts";

/** What a run has to know of an interpreter that was started earlier: places in its memory. */
export interface EngineState {
  readonly stackPointer: number;
  readonly runtimePtr: number;
  readonly contextPtr: number;
  /** Handles of the prelude's functions. */
  readonly run: number;
  readonly settle: number;
  /** Eight bytes that seed `Math.random`. */
  readonly seedAt: number;
}

/** Names under which a run gives the program its two ways to reach the host. */
export const HOST_CALL = "hostCall";
export const HOST_DONE = "hostDone";
/** The language features of programs: nothing that reveals when memory is collected or how time passes. */
const INTRINSICS = Intrinsics.ALL & ~Intrinsics.WEAK_REF & ~Intrinsics.PERFORMANCE;
const STATE_SECTION = "svc.state";
/** Bytes that depend on when an interpreter starts: the state of its random numbers. */
const SEED_BYTES = 16;

/**
 * Starts an interpreter with the host API in it and writes its memory into the module. Every instance of that module is
 * an interpreter in the state this one had, without running any of the start. The same input gives the same bytes.
 */
export async function bakeEngine(engine: Uint8Array): Promise<Uint8Array> {
  const vm = await startAt(engine, 1n);
  const makeBridge = vm.evalCode(GUEST_PRELUDE, "host");
  const absent = () => vm.undefined;
  const [call, done] = [vm.newFunction(HOST_CALL, absent), vm.newFunction(HOST_DONE, absent)];
  const bridge = vm.callFunction(makeBridge, vm.undefined, call, done);
  const [run, settle] = [vm.exportHandle(bridge.getProp("run")), vm.exportHandle(bridge.getProp("settle"))];
  const { memory, stackPointer, runtimePtr, contextPtr } = vm.snapshot();
  const state: EngineState = { stackPointer, runtimePtr, contextPtr, run, settle, seedAt: await findSeed(engine) };
  return withImage(engine, memory, { name: STATE_SECTION, content: new TextEncoder().encode(JSON.stringify(state)) });
}

export function readEngineState(module: WebAssembly.Module): EngineState {
  const [section] = WebAssembly.Module.customSections(module, STATE_SECTION);
  if (!section) throw new Error("the engine was not started before");
  return JSON.parse(new TextDecoder().decode(section)) as EngineState;
}

function startAt(engine: Uint8Array, timeNs: bigint): Promise<QuickJS> {
  return QuickJS.create({
    wasm: engine as BufferSource,
    timezoneOffset: 0,
    intrinsics: INTRINSICS,
    wasi: (memory) => ({
      clock_time_get(_clock: number, _precision: bigint, at: number) {
        new DataView(memory.buffer).setBigUint64(at, timeNs, true);
        return 0;
      },
      random_get(at: number, size: number) {
        new Uint8Array(memory.buffer, at, size).fill(0);
        return 0;
      },
    }),
  });
}

/**
 * Finds where the interpreter keeps its random seed, which comes from the time. Nothing else in it depends on the time.
 */
async function findSeed(engine: Uint8Array): Promise<number> {
  const [one, other] = [await startAt(engine, 1n), await startAt(engine, 1n << 60n)].map((vm) => vm.snapshot().memory);
  const first = one!.findIndex((byte, at) => byte !== other![at]);
  const last = one!.findLastIndex((byte, at) => byte !== other![at]);
  const seedAt = first - (first % 8);
  if (first < 0 || last >= seedAt + SEED_BYTES)
    throw new Error("the interpreter does not keep the seed of its random numbers in one place");
  return seedAt;
}
