/** Three servers of two accounts on machines of their own, which share a space and write to it, and are killed and started again. */
import type { Rng } from "../rng.ts";
import { type ScratchDir, scratchDir } from "../scratch.ts";
import { until } from "../server/client.ts";
import { type Device, joinOpen } from "../server/devices.ts";
import { createSpace } from "../server/fixtures.ts";
import { createSpaceWorkload } from "../worlds/space-workload.ts";
import type { Machine } from "./machines.ts";

export interface Seat {
  readonly machine: Machine;
  readonly root: ScratchDir;
  /** The server, while it runs. */
  device: Device | undefined;
  mnemonic: string | undefined;
}

/** Resolves when the space is on all of them. `place` makes a machine, and what the test wants to know of it. */
export async function openSeats<P extends { readonly machine: Machine }>(
  stack: AsyncDisposableStack,
  rng: Rng,
  place: () => Promise<P>,
  waitMs: number,
) {
  const seats: (Seat & P)[] = [];
  stack.defer(async () => {
    for (const { device } of seats) await device?.server[Symbol.asyncDispose]();
  });
  const start = async (seat: Seat): Promise<Device> => {
    const { mnemonic, root } = seat;
    const options = { lan: true, dataDir: root.path, ...(mnemonic === undefined ? {} : { mnemonic }) };
    seat.device = await seat.machine.start(options);
    seat.mnemonic ??= seat.device.mnemonic;
    return seat.device;
  };
  const sit = async (mnemonic?: string): Promise<Device> => {
    const seat = { ...(await place()), root: stack.use(scratchDir("svc-seat")), device: undefined, mnemonic };
    seats.push(seat);
    return start(seat);
  };
  const owner = await sit();
  const space = await createSpace(owner.server.client);
  const workload = await createSpaceWorkload(owner.server.client, space.id, rng);
  const writer = await sit();
  await joinOpen(owner, writer, space.id);
  await sit(owner.mnemonic);
  for (const { device } of seats)
    await until(() => workload.isReady(device!.server.client), "the space to be everywhere", waitMs);

  const write = async ({ device }: Seat): Promise<void> => {
    if (device) await Promise.all(Array.from({ length: rng.int(1, 6) }, () => workload.write(device.server.client)));
  };
  return {
    seats,
    spaceId: space.id,
    workload,
    /** A few random writes at once. */
    write,
    /** Kills or stops the server while it is written to; mostly it is started again. */
    async interrupt(seat: Seat): Promise<void> {
      const writes = write(seat);
      await (rng.chance(0.7) ? seat.device?.server.kill() : seat.device?.server.stop());
      await writes;
      seat.device = undefined;
      if (rng.chance(0.8)) await start(seat);
    },
    /** Starts those that do not run; answers all. */
    async everybody(): Promise<Device[]> {
      for (const seat of seats) if (!seat.device) await start(seat);
      return seats.map(({ device }) => device!);
    },
  };
}
