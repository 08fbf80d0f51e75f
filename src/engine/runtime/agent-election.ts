import type { DeviceService } from "../../domain/device/device-service.ts";
import type { Election } from "../../domain/trigger/port.ts";
import { AGENT } from "./agent-space.ts";

export function createElection(devices: DeviceService, self: string): Election {
  // A tick asks for every trigger. Within a turn of the loop nothing changes; a moment later a claim may have been heard, and
  // who took a floating trigger by what was true before would keep it.
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

/** Boot sequence of the spec: be there, look who is active, claim when nobody else carries the agent. */
export async function joinElection(devices: DeviceService, self: string): Promise<void> {
  const own = devices.list().devices.find((device) => device.peerId === self);
  if (!own) return; // pruned: this device takes no part any more
  if (own.apps?.[AGENT] === undefined) await devices.update({ apps: { [AGENT]: {} } });
  await keepElection(devices, self);
}

/** Claims what nobody holds: the first device there is, or a survivor of the one that was active. */
export async function keepElection(devices: DeviceService, self: string): Promise<void> {
  const { devices: rows, active } = devices.list();
  if (active[AGENT] !== undefined) return;
  if (rows.find((device) => device.peerId === self)?.apps?.[AGENT] === undefined) return;
  await devices.activate(AGENT);
}
