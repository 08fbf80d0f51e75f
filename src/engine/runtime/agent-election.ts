import type { DeviceService } from "../../domain/device/device-service.ts";
import type { Election } from "../../domain/trigger/port.ts";
import { AGENT } from "./agent-space.ts";

/** How long what the rows of devices say is taken for true: a tick asks for every trigger. */
const FRESH_MS = 200;

export function createElection(devices: DeviceService, self: string): Election {
  let known: { untilMs: number; active: string | undefined; peers: ReadonlySet<string> } | undefined;
  const look = () => {
    const nowMs = performance.now();
    if (known && nowMs < known.untilMs) return known;
    const { devices: rows, active } = devices.list();
    known = { untilMs: nowMs + FRESH_MS, active: active[AGENT], peers: new Set(rows.map(({ peerId }) => peerId)) };
    return known;
  };
  return { self, active: () => look().active, isKnown: (peerId) => look().peers.has(peerId) };
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
