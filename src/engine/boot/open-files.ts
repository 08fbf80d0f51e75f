import { closePart } from "../../base/service.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import { type AccountFiles, createAccountFiles } from "../account-files.ts";
import type { BootOptions } from "./boot-engine.ts";
import type { OpenAccount } from "./open-account.ts";
import type { Bus } from "./open-bus.ts";

/**
 * Boot, phase 3, closed with `parts`: opens the contents of files, which are dropped with their space. `isBootstrapping` is true
 * while the boot pass runs.
 */
export async function openFiles(
  parts: AsyncDisposableStack,
  { accountDir, config, clock, log, isBusy = () => false }: BootOptions,
  { spaces }: OpenAccount,
  { startLongWork }: Bus,
  events: SpaceEvents,
  isBootstrapping: () => boolean,
): Promise<AccountFiles> {
  const opened = await createAccountFiles({
    accountDir,
    clock,
    log,
    cacheLimitBytes: config["files.cacheLimit"],
    sweepEveryMs: config["files.gcInterval"],
    keepsAll: config["files.keep"] === "all",
    startLongWork,
    activeIds: spaces.activeIds,
    isActive: spaces.isActive,
    isOver: (spaceId) => spaces.rowOf(spaceId)?.["status"] === "deleted",
    isBootstrapping,
    isBusy,
    use: (spaceId, run) => spaces.use(spaces.requireActive(spaceId), run),
  });
  const files = parts.adopt(opened, closePart);
  events.on("closed", files.closed);
  events.on("ended", files.ended);
  return files;
}
