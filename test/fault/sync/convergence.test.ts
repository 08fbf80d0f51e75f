/**
 * Devices of one account write at random while links go up and down and processes are killed: whatever was acknowledged
 * is everywhere in the end, and the rows are the same bytes. A failure prints its seed; SEED repeats it.
 */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { createRng, runSeed } from "../../support/rng.ts";
import { rule } from "../../support/rule.ts";
import { type ScratchDir, scratchDir } from "../../support/scratch.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import { type Device, rowsOf, spacesOf, startDevice, statusOf } from "../../support/server/devices.ts";
import { createSpace, setFields } from "../../support/server/fixtures.ts";

const SEED = runSeed("convergence");
const STEPS = 60;
const DEVICES = 3;
const WORDS = ["alder", "birch", "cedar", "elder", "hazel"];

interface Seat {
  readonly root: ScratchDir;
  device: Device | undefined;
  lan: boolean;
  network: boolean;
}

describeWithNats("convergence of an account's devices", () => {
  rule(
    `[SYNC-3] random writes, links that come and go, kill -9 of devices and of the network; seed ${SEED}`,
    async () => {
      const rng = createRng(SEED);
      const { pick } = rng;
      await using nats = await startNats();
      const seats: Seat[] = Array.from({ length: DEVICES }, (_, index) => ({
        root: scratchDir(`svc-seat-${index}`),
        device: undefined,
        lan: false,
        network: true,
      }));
      let mnemonic: string | undefined;
      let natsRuns = true;
      const start = async (seat: Seat): Promise<Device> => {
        seat.device = await startDevice({
          dataDir: seat.root.path,
          lan: seat.lan,
          ...(seat.network ? { network: nats.url } : {}),
          ...(mnemonic === undefined ? {} : { mnemonic }),
        });
        mnemonic ??= seat.device.mnemonic;
        return seat.device;
      };
      try {
        const first = await start(seats[0]!);
        const spaceId = (await createSpace(first.server.client)).id;
        await until(async () => (await statusOf(first, spaceId)).state === "synced", "the first to be synced", 30_000);
        for (const seat of seats.slice(1)) {
          const device = await start(seat);
          await until(async () => (await spacesOf(device)).some(({ id }) => id === spaceId), "the space", 30_000);
        }

        /** Names that were acknowledged as an object's last write by their device. */
        const made = new Set<string>();
        let counter = 0;
        const write = async (device: Device): Promise<void> => {
          const { client } = device.server;
          const known = made.size === 0 || rng.next() < 0.4 ? undefined : pick([...made]);
          const exists =
            known !== undefined &&
            (
              await client.post<{ records: JsonObject[] }>(
                `/v1/spaces/${spaceId}/objects/query`,
                { filter: { id: known } },
                200,
              )
            ).records.length > 0;
          if (exists) {
            await client.post(
              `/v1/spaces/${spaceId}/modify`,
              {
                objectId: known,
                dataset: "objects",
                records: [
                  setFields(
                    known,
                    { "svc.name": pick(WORDS), "svc.description": `${pick(WORDS)} ${counter++}` },
                    false,
                  ),
                ],
              },
              200,
            );
            return;
          }
          const initialProperties = { svc: { name: pick(WORDS), description: `${counter++}` } };
          const object = await client.post<{ id: string }>(`/v1/spaces/${spaceId}/objects`, { initialProperties }, 201);
          made.add(object.id);
        };

        for (let step = 0; step < STEPS; step++) {
          const seat = pick(seats);
          const roll = rng.next();
          if (roll < 0.8) {
            if (seat.device) for (let i = 0; i < rng.int(1, 6); i++) await write(seat.device);
          } else if (roll < 0.92) {
            if (seat.device) {
              await (rng.next() < 0.6 ? seat.device.server.kill() : seat.device.server.stop());
              seat.device = undefined;
            }
            if (rng.next() < 0.8) {
              seat.lan = rng.next() < 0.5;
              seat.network = rng.next() < 0.7;
              await start(seat);
            }
          } else if (natsRuns) {
            await nats.kill();
            natsRuns = false;
          } else {
            await nats.start();
            natsRuns = true;
          }
        }

        if (!natsRuns) await nats.start();
        for (const seat of seats) {
          await seat.device?.server.stop();
          seat.lan = true;
          seat.network = true;
          await start(seat);
        }
        const devices = seats.map((seat) => seat.device!);
        let rows: string[] = [];
        await until(
          async () => {
            const states = await Promise.all(devices.map(async (device) => (await statusOf(device, spaceId)).state));
            if (states.some((state) => state !== "synced")) return false;
            rows = await Promise.all(devices.map((device) => rowsOf(device, spaceId)));
            return rows.every((text) => text === rows[0]);
          },
          `convergence (seed ${SEED})`,
          60_000,
        );
        const present = new Set((JSON.parse(rows[0]!) as { id: string }[]).map(({ id }) => id));
        expect([...made].filter((id) => !present.has(id))).toEqual([]);
        expect(made.size).toBeGreaterThan(10);
      } finally {
        for (const seat of seats) {
          await seat.device?.server[Symbol.asyncDispose]();
          seat.root[Symbol.dispose]();
        }
      }
    },
    240_000,
  );
});
