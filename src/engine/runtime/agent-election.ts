import type { DeviceService } from "../../domain/device/device-service.ts";
import type { Election } from "../../domain/trigger/port.ts";
import { AGENT } from "./agent-space.ts";

export function createElection(devices: DeviceService, self: string): Election {
  // A tick asks for every trigger, and nothing changes within a turn of the event loop. A moment later a claim may have been
  // heard, so a result that is kept longer could assign a floating trigger to the wrong device.
  let known: { active: string | undefined; peers: ReadonlySet<string> } | undefined;
  const look = () => {
    if (known) return known;
    const { devices: rows, active } = devices.list();
    known = { active: active[AGENT], peers: new Set(rows.map(({ peerId }) => peerId)) };
    setImmediate(() => {
      known = undefined;
    });
    return known;
  };
  return {
    self,
    active: () => look().active,
    isKnown: (peerId) => look().peers.has(peerId),
    isPruned: devices.isPruned,
  };
}

/**
 * Takes part in the election at boot: registers this device, looks which one is active, and claims when no other device runs the
 * agent.
 */
export async function joinElection(devices: DeviceService, self: string): Promise<void> {
  const own = devices.list().devices.find((device) => device.peerId === self);
  if (!own) return; // pruned: this device takes no part any more
  if (own.apps?.[AGENT] === undefined) await devices.update({ apps: { [AGENT]: {} } });
  await keepElection(devices, self);
}

/** Claims the agent when no device holds it: as the first device, or as a survivor of the active one. */
export async function keepElection(devices: DeviceService, self: string): Promise<void> {
  const { devices: rows, active } = devices.list();
  if (active[AGENT] !== undefined) return;
  if (rows.find((device) => device.peerId === self)?.apps?.[AGENT] === undefined) return;
  await devices.activate(AGENT);
}
