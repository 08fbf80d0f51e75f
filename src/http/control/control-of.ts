import type { Engine } from "../../engine/boot/engine.ts";
import { svcError } from "../../protocol/errors.ts";

/** The part of an engine behind the control API. Waits for the agent space, which is made after the boot. */
export async function controlOf({ runtime }: Engine) {
  if (!runtime) throw svcError("runtime.disabled");
  return runtime.control();
}
