import type { Clock } from "../base/clock.ts";
import type { PeerId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { DeviceCopied } from "../protocol/meta.ts";

/** What people are told to do. */
const NEW_DEVICE_REMEDY =
  "stop this server or the other one and run `svc init --new-device` on its data root: it becomes a device of its own and keeps everything else";
const LOG_AGAIN_MS = 10 * 60_000;
/** Without a sign of the copy for so long, it is taken to be gone. */
const GONE_AFTER_MS = 15 * 60_000;

/** Whether another server runs with this device's key (SYNC-8): a copy of this data root, or the root that this is a copy of. */
export function createDeviceCopy(deps: { readonly peerId: PeerId; readonly clock: Clock; readonly log: Log }) {
  const { clock, log } = deps;
  let first: { where: DeviceCopied["where"]; sinceMs: number } | undefined;
  let lastMs = 0;
  let loggedMs = 0;
  const isGone = (): boolean => clock.nowMs() - lastMs > GONE_AFTER_MS;

  return {
    /** The other server has just proved that it runs and holds the key. */
    seen(where: DeviceCopied["where"]): void {
      const now = clock.nowMs();
      if (!first || isGone()) first = { where, sinceMs: now };
      lastMs = now;
      if (now - loggedMs < LOG_AGAIN_MS) return;
      loggedMs = now;
      log.error("another server runs with this device's own key: its data root is a copy of this one, or this of its", {
        peerId: deps.peerId,
        where,
        remedy: NEW_DEVICE_REMEDY,
      });
    },
    state: (): DeviceCopied | undefined =>
      first && !isGone()
        ? { where: first.where, since: new Date(first.sinceMs).toISOString(), remedy: NEW_DEVICE_REMEDY }
        : undefined,
  };
}
