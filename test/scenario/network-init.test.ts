/** `POST /v1/network/init`: what it makes, that it may be repeated, and everything it refuses. */
import { describe, expect } from "bun:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describeWithNats, startNats } from "../support/network/nats.ts";
import { rule, useServer } from "../support/rule.ts";
import { startServer } from "../support/server/server.ts";

interface Made {
  created: string[];
  existing: string[];
}

const PATH = "/v1/network/init";
const offline = { SVC_SYNC_INTERVAL: "1h" };

describe("network init without a network", () => {
  const shared = useServer();

  rule("[SYNC-10] without network.url it is network.disabled", async () => {
    await shared.client.fails("POST", PATH, {}, 409, "network.disabled");
    await shared.client.fails("POST", PATH, undefined, 409, "network.disabled");
  });

  for (const [body, code] of [
    [{ replicas: 2 }, "request.invalid_field"],
    [{ replicas: 0 }, "request.invalid_field"],
    [{ replicas: "3" }, "request.schema"],
    [{ replicas: 1.5 }, "request.schema"],
    [{ replicas: 1, streams: 8 }, "request.unknown_field"],
  ] as const)
    rule(`[API-1] ${JSON.stringify(body)} is ${code}, network or not`, async () => {
      await shared.client.fails("POST", PATH, body, 400, code);
    });
});

describeWithNats("network init", () => {
  rule(
    "[SYNC-10] makes the streams with the replicas asked for, finds them made, and keeps them as they are",
    async () => {
      await using nats = await startNats();
      const nc = await connect({ servers: nats.url });
      const jsm = await jetstreamManager(nc);
      const config = async (name: string) => (await jsm.streams.info(name)).config;
      try {
        // A client that finds no streams makes them where it may; with them gone again, init is the one to do it.
        await using server = await startServer({ env: { ...offline, SVC_NETWORK_URL: nats.url } });
        const names: string[] = [];
        for await (const {
          config: { name },
        } of jsm.streams.list())
          names.push(name);
        for (const name of names) await jsm.streams.delete(name);

        const first = await server.client.post<Made>(PATH, { replicas: 1 }, 200);
        expect(first.existing).toEqual([]);
        expect(first.created.slice().sort()).toEqual(names.sort());
        expect(first.created).toContain("SVC_LOG_0");
        expect(first.created).toContain("SVC_INBOX");
        expect(first.created).toContain("SVC_FILES");
        for (const name of first.created)
          expect(await config(name)).toMatchObject({ num_replicas: 1, deny_delete: true, deny_purge: true });

        const before = await config("SVC_LOG_3");
        for (const body of [{ replicas: 1 }, {}, { replicas: 3 }, undefined]) {
          const again = await server.client.post<Made>(PATH, body, 200);
          expect(again.created).toEqual([]);
          expect(again.existing.slice().sort()).toEqual(names);
        }
        expect(await config("SVC_LOG_3")).toEqual(before);

        await nats.kill();
        await server.client.fails("POST", PATH, {}, 503, "network.unavailable");
      } finally {
        await nc.close();
      }
    },
    60_000,
  );

  rule(
    "[SYNC-10] credentials that may make nothing are network.forbidden",
    async () => {
      const config = `authorization { users: [
      { user: "reader", password: "reader", permissions: {
        publish: { allow: ["$JS.API.STREAM.INFO.*", "$JS.API.INFO"] }, subscribe: { allow: ["_INBOX.>"] } } }
    ] }`;
      await using nats = await startNats({ config });
      const url = nats.url.replace("nats://", "nats://reader:reader@");
      await using server = await startServer({ env: { ...offline, SVC_NETWORK_URL: url } });
      await server.client.fails("POST", PATH, {}, 403, "network.forbidden");
      await using stranger = await startServer({ env: { ...offline, SVC_NETWORK_URL: nats.url } });
      await stranger.client.fails("POST", PATH, {}, 403, "network.forbidden");
    },
    60_000,
  );
});
