import { meterWasm } from "./wasm-meter.ts";

/**
 * The interpreter's wasm with its fuel put in. From source it is instrumented here; the build replaces this module by
 * one that carries the finished bytes.
 */
export async function readMeteredEngine(): Promise<Uint8Array> {
  const path = new URL("../../node_modules/quickjs-wasi/quickjs.wasm", import.meta.url);
  return meterWasm(await Bun.file(path).bytes());
}
