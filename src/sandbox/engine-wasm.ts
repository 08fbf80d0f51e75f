import { bakeEngine } from "./engine-image.ts";
import { meterWasm } from "./wasm-meter.ts";

/**
 * Reads the interpreter's wasm, with fuel metering added and already started. From source it is made here; the build
 * replaces this module by one that contains the finished bytes.
 */
export async function readEngine(): Promise<Uint8Array> {
  const path = new URL("../../node_modules/quickjs-wasi/quickjs.wasm", import.meta.url);
  return bakeEngine(meterWasm(await Bun.file(path).bytes()));
}
