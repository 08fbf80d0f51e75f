/** Files over a line to the network that corrupts, cuts, stalls and refuses. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { filesInStore } from "../../support/network/nats-files.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { pace } from "../../support/pace.ts";
import { createRng, runSeed } from "../../support/rng.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { startDevice, untilStatus } from "../../support/server/devices.ts";
import { attach, bytesOf, content, filesPath } from "../../support/server/files.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const MB = 1 << 20;
const STRIKES = 14;

describeWithNats("files over a bad line", () => {
  rule(
    "[FILE-8] bytes are equal at the end and durable is not said before the store has every chunk",
    async () => {
      const rng = createRng(runSeed("files over a bad line"));
      await using nats = await startNats();
      await using line = await startTcpProxy(nats.port);
      const network = `nats://127.0.0.1:${line.port}`;
      await using a = await startDevice({ network });
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const size = 12 * MB + 3;
      const file = await attach(client, space.id, objectId, bytesOf(size, 1));
      const path = `${filesPath(space.id)}/${file.fileId}`;
      const isDurable = async (): Promise<boolean> =>
        (await client.get<{ state: string }>(`${path}/status`)).state === "durable";
      const chunks = Math.ceil(size / (512 << 10)) + 1;

      const strike = async (): Promise<void> => {
        const direction = rng.pick(["up", "down"] as const);
        const bytes = rng.int(1, 2 * MB);
        switch (rng.int(0, 3)) {
          case 0:
            return line.corruptAfter(direction, bytes);
          case 1:
            return line.cutAfter(direction, bytes, rng.pick(["end", "reset"]));
          case 2:
            line.stall(direction, true);
            await pace(rng.int(100, 1_500));
            return line.stall(direction, false);
          default:
            line.block(true);
            await pace(rng.int(50, 500));
            return line.block(false);
        }
      };
      for (let i = 0; i < STRIKES && !(await isDurable()); i++) {
        await strike();
        await pace(rng.int(50, 600));
        if (await isDurable()) expect((await filesInStore(nats.url)).messages).toBeGreaterThanOrEqual(chunks);
      }
      line.sever();
      await until(isDurable, "the file to be durable", 90_000);
      expect((await filesInStore(nats.url)).messages).toBeGreaterThanOrEqual(chunks);
      await a.server.kill(); // the bytes can come from the network alone

      await using b = await startDevice({ network, mnemonic: a.mnemonic });
      await untilStatus(b, space.id, "active");
      line.corruptAfter("down", 3 * MB);
      let got = new Uint8Array(0);
      await until(
        async () => {
          const answer = await content(b.server.client, space.id, file.fileId).catch(() => undefined);
          if (answer?.status === 200) got = answer.bytes as Uint8Array<ArrayBuffer>;
          return answer?.status === 200;
        },
        "the bytes to come back",
        60_000,
      );
      expect(Buffer.compare(got, bytesOf(size, 1))).toBe(0);
    },
    240_000,
  );

  rule(
    "[PROC-2] a backup and a fetch of more than three seconds are processes with bytes while they last; a short one is none",
    async () => {
      await using nats = await startNats();
      await using line = await startTcpProxy(nats.port);
      const network = `nats://127.0.0.1:${line.port}`;
      await using a = await startDevice({ network });
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const processOf = async (from: typeof client, kind: string, rootCid: string | undefined) =>
        (
          await from.get<{ processes: { id: string; state: string; done: number; total?: number }[] }>("/v1/processes")
        ).processes.find(({ id }) => id === `file.${kind}.${rootCid}`);
      const untilDurable = (fileId: string) =>
        until(
          async () =>
            (await client.get<{ state: string }>(`${filesPath(space.id)}/${fileId}/status`)).state === "durable",
          "the file to be durable",
          60_000,
        );
      const short = await attach(client, space.id, objectId, bytesOf(MB, 3));
      await untilDurable(short.fileId);

      const size = 6 * MB;
      line.stall("up", true);
      const long = await attach(client, space.id, objectId, bytesOf(size, 4));
      await until(
        async () => (await processOf(client, "backup", long.rootCid))?.state === "running",
        "the row",
        15_000,
      );
      const row = await processOf(client, "backup", long.rootCid);
      expect([row?.total, row!.done < size]).toEqual([size, true]);
      line.stall("up", false);
      await untilDurable(long.fileId);
      await until(async () => (await processOf(client, "backup", long.rootCid))?.state === "done", "its end");
      expect((await processOf(client, "backup", long.rootCid))?.done).toBe(size);
      expect(await processOf(client, "backup", short.rootCid)).toBeUndefined();

      // The other way: a device that keeps everything fetches it over a line that stands still for a while.
      await a.server.kill();
      await using b = await startDevice({ network, mnemonic: a.mnemonic });
      await untilStatus(b, space.id, "active");
      const there = b.server.client;
      await until(
        async () => (await there.request("GET", `${filesPath(space.id)}/${long.fileId}`)).status === 200,
        "the file's row",
        30_000,
      );
      line.stall("down", true);
      await there.post(`${filesPath(space.id)}/${long.fileId}/pin`, undefined, 204);
      await until(async () => (await processOf(there, "fetch", long.rootCid))?.state === "running", "its row", 15_000);
      line.stall("down", false);
      await until(async () => (await processOf(there, "fetch", long.rootCid))?.state === "done", "its end", 60_000);
      expect((await there.get<{ cached: boolean }>(`${filesPath(space.id)}/${long.fileId}`)).cached).toBe(true);
    },
    180_000,
  );

  rule(
    "[FILE-8] a server whose messages are too small for a chunk is named, and never said to be durable",
    async () => {
      await using nats = await startNats({ config: "max_payload: 300000" });
      await using a = await startDevice({ network: nats.url });
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const file = await attach(client, space.id, objectId, bytesOf(2 * MB, 2));
      const path = `${filesPath(space.id)}/${file.fileId}/status`;
      await until(
        async () => ((await client.get<{ lastErr?: string }>(path)).lastErr ?? "").includes("max_payload"),
        "the reason to be said",
        30_000,
      );
      expect(await client.get<object>(path)).toMatchObject({ state: "inflight" });
    },
    60_000,
  );
});
