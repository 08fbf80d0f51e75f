/** What many spaces cost where nothing happens: regular rounds ask about them without opening them, and miss nothing. */
import { describe, expect } from "bun:test";
import { connect } from "@nats-io/transport-node";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { type Device, setName, startDevice, statusOf, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const SPACES = 12;
const ROUND_MS = 250;
const WATCHED_ROUNDS = 12;
const LONG_MS = 120_000;
const env = { SVC_SYNC_INTERVAL: `${ROUND_MS}ms` };

async function fill(device: Device): Promise<{ spaceId: string; objectId: string }[]> {
  const made: { spaceId: string; objectId: string }[] = [];
  for (let i = 0; i < SPACES; i++) {
    const { id: spaceId } = await createSpace(device.server.client);
    made.push({ spaceId, objectId: (await createObject(device.server.client, spaceId)).id });
  }
  return made;
}

const untilSynced = async (device: Device, spaces: readonly { spaceId: string }[]): Promise<void> => {
  for (const { spaceId } of spaces) {
    await until(
      async () => {
        const reply = await device.server.client.request("GET", `/v1/spaces/${spaceId}/sync-status`);
        const { state, total } = (reply.json ?? {}) as { state?: string; total?: number };
        return reply.status === 200 && state === "synced" && total === 1;
      },
      "every space to be synced",
      30_000,
    );
  }
};

/** Until so many regular rounds found a space as it was, as they find all of them. */
async function rounds(device: Device, spaceId: string, count: number): Promise<void> {
  const at = async () => (await statusOf(device, spaceId)).lastSyncedAt;
  for (let n = 0; n < count; n++) {
    const before = await at();
    await until(async () => (await at()) !== before, "a round");
  }
}

/** Edits pass both ways in the first and the last of the spaces, and the status goes back to synced. */
async function expectAlive([a, b]: [Device, Device], spaces: readonly { spaceId: string; objectId: string }[]) {
  for (const { spaceId, objectId } of [spaces[0]!, spaces.at(-1)!]) {
    await setName(a, spaceId, objectId, "from the first");
    await untilSame([a, b], spaceId, (rows) => rows.includes("from the first"));
    await setName(b, spaceId, objectId, "from the second");
    await untilSame([a, b], spaceId, (rows) => rows.includes("from the second"));
  }
  for (const device of [a, b]) {
    const before = (await statusOf(device, spaces[0]!.spaceId)).lastSyncedAt;
    await untilSynced(device, spaces);
    // Resting spaces are found synced again and again, too.
    await until(
      async () => (await statusOf(device, spaces[0]!.spaceId)).lastSyncedAt! > (before ?? ""),
      "a later look",
    );
  }
}

describeWithNats("spaces at rest on a network", () => {
  rule(
    "[SYNC-5] regular rounds of spaces where nothing happens ask the network nothing, and what happens still comes",
    async () => {
      await using nats = await startNats();
      await using first = await startDevice({ network: nats.url, env });
      const spaces = await fill(first);
      await using second = await startDevice({ network: nats.url, mnemonic: first.mnemonic, env });
      for (const device of [first, second]) await untilSynced(device, spaces);

      const spy = await connect({ servers: nats.url });
      try {
        let asked = 0;
        spy.subscribe("$JS.API.>", { callback: () => void asked++ });
        await spy.flush();
        // The accounts' own spaces are looked at in every round; each of the others would be asked for four times. Each
        // device makes rounds while the other's are counted.
        const perRound = () => asked / (4 * WATCHED_ROUNDS);
        await until(
          async () => {
            asked = 0;
            for (const device of [first, second]) await rounds(device, spaces[0]!.spaceId, WATCHED_ROUNDS);
            expect(asked).toBeGreaterThan(0);
            return perRound() < SPACES;
          },
          "rounds that ask for less than one thing a space",
          30_000,
        );
      } finally {
        await spy.close();
      }
      await expectAlive([first, second], spaces);
    },
    LONG_MS,
  );
});

describe("spaces at rest on a LAN", () => {
  rule(
    "[SYNC-3] edits pass between devices whose spaces rest",
    async () => {
      await using first = await startDevice({ lan: true, env });
      const spaces = await fill(first);
      await using second = await startDevice({ lan: true, mnemonic: first.mnemonic, env });
      for (const device of [first, second]) await untilSynced(device, spaces);
      for (const device of [first, second]) await rounds(device, spaces[0]!.spaceId, 4);
      await expectAlive([first, second], spaces);
    },
    LONG_MS,
  );
});
