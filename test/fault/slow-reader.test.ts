/** Readers of status streams that stop reading: told how much they missed, and never left with what is no longer true. */
import { expect } from "bun:test";
import { createLan, describeWithMachines } from "../support/network/machines.ts";
import { rule } from "../support/rule.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";

const SPACES = 24;
/** With the spaces far more statuses than small sockets hold. */
const ROUNDS = 40;
const WAIT_MS = 20_000;

interface Frame {
  event: string;
  data: JsonObject;
}

describeWithMachines("readers that stop reading", () => {
  rule(
    "[LIVE-4] a slow reader gets lagged with the number of statuses it missed, and the newest of each space",
    async () => {
      await using lan = createLan();
      const machine = await lan.machine();
      machine.smallSockets();
      await using device = await machine.start({ env: { SVC_SYNC_INTERVAL: "1h" } });
      const { client } = device.server;
      const spaces = await Promise.all(Array.from({ length: SPACES }, () => createSpace(client)));
      const read = async (path: string) => {
        const script = await machine.script("slow-reader.ts", String(device.server.port), path);
        const frames = (): Frame[] =>
          script
            .lines()
            .slice(1)
            .map((line) => JSON.parse(line) as Frame);
        const statuses = () => frames().flatMap(({ event, data }) => (event === "status" ? [data] : []));
        const say = async (word: string) => {
          script.say(word);
          await until(() => frames().some(({ event }) => event === word), word, WAIT_MS);
        };
        return { frames, statuses, say };
      };
      const totalsOf = (statuses: readonly JsonObject[]) =>
        spaces.map(({ id }) => statuses.findLast(({ spaceId }) => spaceId === id)?.["total"]);
      const path = "/v1/sync-status/subscribe";
      const [fast, slow] = [await read(path), await read(path)];
      for (const { statuses } of [fast, slow])
        await until(() => totalsOf(statuses()).every((total) => total === 0), "the first statuses", WAIT_MS);
      await slow.say("pause");
      for (let round = 1; round <= ROUNDS; round++) {
        await Promise.all(spaces.map(({ id }) => createObject(client, id)));
        await until(() => totalsOf(fast.statuses()).every((total) => total === round), "a round", WAIT_MS);
      }
      await slow.say("resume");
      await until(() => totalsOf(slow.statuses()).every((total) => total === ROUNDS), "the newest statuses", WAIT_MS);
      const missed = slow.frames().findLast(({ event }) => event === "lagged")?.data["total"];
      expect(fast.frames().some(({ event }) => event === "lagged")).toBe(false);
      expect(missed).toBeGreaterThan(0);
      expect(slow.statuses().length + (missed as number)).toBe(fast.statuses().length);
    },
    90_000,
  );
});
