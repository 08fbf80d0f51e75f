import { expect } from "bun:test";
import { rowBytesOf } from "../row-bytes.ts";
import { type JsonObject, until } from "../server/client.ts";
import { type Device, statusOf } from "../server/devices.ts";
import type { SpaceWorkload } from "../worlds/space-workload.ts";

export interface ConvergedOptions {
  readonly devices: readonly Device[];
  readonly spaceId: string;
  readonly workload: SpaceWorkload;
  readonly seed: number;
  readonly timeoutMs: number;
}

/**
 * Waits until devices whose links have healed are synced and show the same, then holds them to it: nothing that was
 * acknowledged is missing, nothing waits, and the rows in their stores are the same bytes. Stops them.
 */
export async function expectConverged(options: ConvergedOptions): Promise<void> {
  const { devices, spaceId, workload, seed, timeoutMs } = options;
  const debugOf = ({ server }: Device) => server.client.get<JsonObject>(`/v1/spaces/${spaceId}/debug`);
  let views: string[] = [];
  let states: string[] = [];
  const converged = async (): Promise<boolean> => {
    states = await Promise.all(devices.map(async (device) => (await statusOf(device, spaceId)).state));
    if (states.some((state) => state !== "synced")) return false;
    views = await Promise.all(devices.map((device) => workload.view(device.server.client)));
    return views.every((view) => view === views[0]);
  };
  await until(converged, "convergence", timeoutMs).catch(async (error: unknown) => {
    const debugs = await Promise.all(devices.map(debugOf));
    const seen = devices.map((_, index) => `device ${index}: ${states[index]} ${JSON.stringify(debugs[index])}`);
    throw new Error(`${error} (seed ${seed})\n${seen.join("\n")}\n${firstDifference(views)}`);
  });
  for (const device of devices) {
    expect(await workload.faults(device.server.client)).toEqual([]);
    expect(await debugOf(device)).toMatchObject({ parked: 0, quarantined: [], unconfirmed: 0 });
  }
  for (const { server } of devices) await server.stop();
  const bytes = devices.map(({ server }) => rowBytesOf(server.dataDir, spaceId));
  expect(bytes[0]!.length).toBeGreaterThan(10);
  for (const rows of bytes) expect(rows).toEqual(bytes[0]!);
}

/** The lines in which two views part first. */
function firstDifference(views: readonly string[]): string {
  const [mine, ...others] = views.map((view) => view.split("\n"));
  const other = others.find((lines) => lines.join() !== mine?.join());
  if (!mine || !other) return "the views are the same";
  const at = mine.findIndex((line, index) => line !== other[index]);
  return `line ${at}: ${mine.slice(at, at + 5).join("")} ≠ ${other.slice(at, at + 5).join("")}`;
}
