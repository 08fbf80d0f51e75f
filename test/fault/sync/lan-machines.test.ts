/**
 * Servers on machines of their own, found by multicast alone: no file, no environment variable, no data root and no
 * network in common. Cables are pulled and put back, links get narrow, servers are killed. SEED repeats a run.
 */
import { expect } from "bun:test";
import { createLan, describeWithMachines } from "../../support/network/machines.ts";
import { openSeats } from "../../support/network/seats.ts";
import { expectConverged } from "../../support/oracle/converged.ts";
import { pace } from "../../support/pace.ts";
import { createRng, runSeed } from "../../support/rng.ts";
import { rounds } from "../../support/rounds.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import { type Device, setName, spacesOf, statusOf, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const SEED = runSeed("lan-machines");
const STEPS = rounds(40);
const LONG_MS = 240_000;
const WAIT_MS = 60_000;
/** A public address (RFC 5737), which here is on the same cable. */
const PUBLIC = { own: "203.0.113.1/24", other: "203.0.113.7" };

const peersOf = async (device: Device): Promise<JsonObject[]> =>
  (await device.server.client.get<{ peers: JsonObject[] }>("/v1/debug/p2p")).peers;

describeWithMachines("servers on machines of one LAN", () => {
  rule(
    "[SYNC-6] find each other by multicast alone, also after a cable was pulled and a server restarted meanwhile",
    async () => {
      await using lan = createLan();
      using root = scratchDir("svc-second");
      const [here, there] = [await lan.machine(), await lan.machine()];
      await using first = await here.start({ lan: true });
      const space = await createSpace(first.server.client);
      const object = await createObject(first.server.client, space.id);
      let second = await there.start({ lan: true, mnemonic: first.mnemonic, dataDir: root.path });
      try {
        expect((await spacesOf(second)).map(({ id }) => id)).toEqual([space.id]);
        await untilSame([first, second], space.id);

        there.cable(false);
        await setName(first, space.id, object.id, "while the cable was out");
        await createObject(second.server.client, space.id, {
          initialProperties: { svc: { name: "on the other side" } },
        });
        there.cable(true);
        const both = (rows: string) => rows.includes("while the cable was out") && rows.includes("on the other side");
        await untilSame([first, second], space.id, both, WAIT_MS);

        there.cable(false);
        await second.server.kill();
        second = await there.start({ lan: true, dataDir: root.path });
        expect((await statusOf(second, space.id)).state).toBe("offline");
        await setName(first, space.id, object.id, "while the other was killed");
        there.cable(true);
        await untilSame([first, second], space.id, (rows) => rows.includes("while the other was killed"), WAIT_MS);
      } finally {
        await second.server[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );

  rule(
    "[SYNC-13] an announced public address is never dialled, one of the LAN is; without p2p nothing is announced or dialled",
    async () => {
      await using lan = createLan();
      const [here, there] = [await lan.machine(), await lan.machine()];
      here.addAddress(PUBLIC.own);
      there.addAddress(`${PUBLIC.other}/24`);
      {
        const abroad = await there.script("lan-announcer.ts", PUBLIC.other);
        await using _device = await here.start({ lan: true });
        await until(() => abroad.lines().includes("announced"), "the announcement", WAIT_MS);
        const near = await there.script("lan-announcer.ts", there.address);
        // Both are announced again and again; by when this one was dialled twice, that one would have been.
        await until(
          () => near.lines().filter((line) => line === "dialled").length >= 2,
          "the other to be dialled",
          WAIT_MS,
        );
        expect(abroad.lines()).toEqual(["announced"]);
      }
      const near = await there.script("lan-announcer.ts", there.address);
      await using off = await here.start({ lan: false });
      await using on = await there.start({ lan: true, mnemonic: off.mnemonic });
      const heard = near.lines().length;
      await until(() => near.lines().length > heard, "the other server to dial", WAIT_MS);
      expect(await off.server.client.get<JsonObject>("/v1/debug/p2p")).toMatchObject({
        enabled: false,
        listenerStarted: false,
        peers: [],
      });
      expect(await peersOf(on)).toEqual([]);
    },
    LONG_MS,
  );

  rule(
    `[SYNC-3] random writes of two accounts over cables that are pulled and narrow, kill -9; seed ${SEED}`,
    async () => {
      const rng = createRng(SEED);
      await using stack = new AsyncDisposableStack();
      const lan = stack.use(createLan());
      const machines = await openSeats(stack, rng, async () => ({ machine: await lan.machine() }), WAIT_MS);
      const { seats, spaceId, workload } = machines;
      for (let step = 0; step < STEPS; step++) {
        const seat = rng.pick(seats);
        const roll = rng.next();
        const { machine } = seat;
        if (roll < 0.6) await machines.write(seat);
        else if (roll < 0.7) machine.cable(rng.chance(0.5));
        else if (roll < 0.8) machine.limit(rng.chance(0.6) ? rng.int(64, 2000) : undefined);
        else if (roll < 0.9) await machines.interrupt(seat);
        else await pace(rng.int(50, 1500));
      }

      for (const { machine } of seats) {
        machine.limit(undefined);
        machine.cable(true);
      }
      const devices = await machines.everybody();
      expect(workload.acknowledged()).toBeGreaterThan(STEPS / 2);
      await expectConverged({ devices, spaceId, workload, seed: SEED, timeoutMs: 2 * WAIT_MS });
    },
    LONG_MS,
  );
});
