/**
 * Servers on machines that do not hear each other. What stands between them announces each to the others with a port of
 * its own, and misbehaves with the bytes that it carries: the LAN link over lines that delay, reset, truncate, stall and
 * spoil. SEED repeats a run.
 */
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { warningsOf } from "../../support/hostile/hostile-peer.ts";
import { type RemoteLine, startLanProxy } from "../../support/network/lan-proxy.ts";
import { createLan, describeWithMachines } from "../../support/network/machines.ts";
import { openSeats } from "../../support/network/seats.ts";
import { mend } from "../../support/network/tcp-line.ts";
import { expectConverged } from "../../support/oracle/converged.ts";
import { pace } from "../../support/pace.ts";
import { createRng, runSeed } from "../../support/rng.ts";
import { rounds } from "../../support/rounds.ts";
import { rule } from "../../support/rule.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import { type Device, joinOpen, setName, statusOf, untilSame, untilSynced } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { recordStates, statesByEndpoint } from "../../support/worlds/state-recorder.ts";

const SEED = runSeed("lan-proxy");
const STEPS = rounds(40);
const LONG_MS = 200_000;
const WAIT_MS = 60_000;
const ROUNDS = 25;
/** So far into what is written then. */
const STRIKE_BYTES = 20_000;
const DIRECTIONS = ["up", "down"] as const;

interface Fault {
  readonly name: string;
  strike(line: RemoteLine): Promise<void>;
}
const FAULTS: readonly Fault[] = [
  { name: "reset", strike: (line) => twice((direction) => line.cutAfter(direction, STRIKE_BYTES, "reset")) },
  { name: "truncated", strike: (line) => twice((direction) => line.cutAfter(direction, STRIKE_BYTES, "end")) },
  { name: "spoilt", strike: (line) => twice((direction) => line.corruptAfter(direction, STRIKE_BYTES)) },
];
async function twice(act: (direction: "up" | "down") => Promise<void>): Promise<void> {
  for (const direction of DIRECTIONS) await act(direction);
}

describeWithMachines("servers with a misbehaving line between them", () => {
  rule(
    "[SYNC-3] bytes that come late, in part, spoilt or not at all break the link at most: it is made anew, all is the same, never synced before",
    async () => {
      await using lan = createLan();
      const [here, there] = [await lan.machine({ apart: true }), await lan.machine({ apart: true })];
      const { lineTo } = await startLanProxy(lan);
      const lines = [lineTo(here), lineTo(there)];
      const env = { SVC_SYNC_INTERVAL: "500ms" };
      await using owner = await here.start({ lan: true, env });
      await using writer = await there.start({ lan: true, env });
      const devices = [owner, writer];
      const onAll = (act: (line: RemoteLine) => Promise<void>): Promise<unknown> => Promise.all(lines.map(act));
      const broken = async () => (await Promise.all(lines.map((line) => line.broken()))).reduce((a, b) => a + b);
      const space = await createSpace(owner.server.client);
      const object = await createObject(owner.server.client, space.id);
      await joinOpen(owner, writer, space.id);
      const healed = async (text: string): Promise<void> => {
        await untilSame(devices, space.id, (rows) => rows.includes(text), WAIT_MS);
        for (const device of devices) await untilSynced(device, space.id, WAIT_MS);
      };
      const big = () => randomBytes(3 * STRIKE_BYTES).toString("base64");
      await healed(object.id);

      for (const { name, strike } of FAULTS) {
        const before = await broken();
        const links = linksOf(owner);
        await onAll(strike);
        for (const device of devices)
          await createObject(device.server.client, space.id, {
            initialProperties: { svc: { name: `${name} by ${device.accountId}`, description: big() } },
          });
        await until(async () => (await broken()) > before, `the line to be ${name}`, WAIT_MS);
        await healed(`${name} by ${owner.accountId}`);
        await healed(`${name} by ${writer.accountId}`);
        expect(linksOf(owner), name).toBeGreaterThan(links);
      }

      await onAll((line) => line.delay(300));
      await setName(writer, space.id, object.id, "late");
      await healed("late");
      await onAll((line) => line.delay(0));

      for (const direction of DIRECTIONS) {
        await onAll((line) => line.stall(direction, true));
        await setName(owner, space.id, object.id, `while ${direction} stalls`);
        const recorder = await recordStates(owner, space.id, [object.id]);
        await until(() => recorder.rounds() >= ROUNDS, "polls", WAIT_MS);
        const said = await recorder.stop();
        expect(Object.keys(statesByEndpoint(said))).toHaveLength(5);
        expect(said.map(({ state }) => state)).not.toContain("synced");
        expect(said.map(({ state }) => state)).not.toContain("all objects synced");
        await onAll((line) => line.stall(direction, false));
        await healed(`while ${direction} stalls`);
      }

      // There is no other way between them.
      await onAll((line) => line.block(true));
      for (const device of devices)
        await until(async () => (await statusOf(device, space.id)).state === "offline", "offline", WAIT_MS);
      for (const device of devices) {
        const debug = await device.server.client.get<JsonObject>(`/v1/spaces/${space.id}/debug`);
        expect(debug).toMatchObject({ parked: 0, quarantined: [], unconfirmed: 0, writersReplaced: 0 });
        expect(warningsOf(device)).toEqual([]);
      }
    },
    LONG_MS,
  );

  rule(
    `[SYNC-3] random writes of two accounts on three machines over such lines, kill -9 of servers; seed ${SEED}`,
    async () => {
      const rng = createRng(SEED);
      await using stack = new AsyncDisposableStack();
      const lan = stack.use(createLan());
      const { lineTo } = await startLanProxy(lan);
      const machines = await openSeats(
        stack,
        rng,
        async () => {
          const machine = await lan.machine({ apart: true });
          return { machine, line: lineTo(machine) };
        },
        WAIT_MS,
      );
      const { seats, spaceId, workload } = machines;
      const breakLine = async (line: RemoteLine): Promise<void> => {
        const direction = rng.pick(DIRECTIONS);
        const bytes = rng.int(1, 6000);
        await rng.pick([
          () => line.delay(rng.int(5, 300)),
          () => line.cutAfter(direction, bytes, rng.pick(["end", "reset"])),
          () => line.corruptAfter(direction, bytes),
          () => line.stall(direction, true),
          () => line.drop(direction, true),
          () => line.block(true),
        ])();
      };
      for (let step = 0; step < STEPS; step++) {
        const seat = rng.pick(seats);
        const roll = rng.next();
        if (roll < 0.55) await machines.write(seat);
        else if (roll < 0.75) await breakLine(seat.line);
        else if (roll < 0.85) await mend(seat.line);
        else if (roll < 0.92) await machines.interrupt(seat);
        else await pace(rng.int(50, 1000));
      }
      for (const { line } of seats) await mend(line);
      const devices = await machines.everybody();
      expect(workload.acknowledged()).toBeGreaterThan(STEPS / 2);
      await expectConverged({ devices, spaceId, workload, seed: SEED, timeoutMs: 2 * WAIT_MS });
    },
    LONG_MS,
  );
});

/** How many links a server has had. */
const linksOf = ({ server }: Device): number => server.stderr().split("p2p: connected").length - 1;
