import type { Engine } from "../../engine/engine.ts";
import { svcError } from "../../protocol/errors.ts";

/** What the control API does on an engine; waits for the agent space, which is made behind the boot. */
export async function controlOf({ runtime }: Engine) {
  if (!runtime) throw svcError("runtime.disabled");
  return runtime.control();
}
