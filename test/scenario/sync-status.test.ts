/** The sync status streams: the state now, each change of it, and their end; alone and with a network that comes and goes. */
import { describe, expect } from "bun:test";
import type { JsonObject } from "../support/hostile/wire-types.ts";
import { describeWithNats, startNats } from "../support/network/nats.ts";
import { rule, useServer } from "../support/rule.ts";
import { ABSENT, createObject, createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import type { SseStream } from "../support/server/sse-stream.ts";

/** More than a slow reader's mailbox holds. */
const MANY = 24;
const ALL = "/v1/sync-status/subscribe";

/** The next status frame that holds; fails when the stream ends or nothing comes for long. */
async function untilFrame(stream: SseStream, holds: (status: JsonObject) => boolean): Promise<JsonObject> {
  for (;;) {
    const status = (await stream.expect("status", 30_000)) as JsonObject;
    if (holds(status)) return status;
  }
}

describe("sync status of a server that is alone", () => {
  const shared = useServer({ env: { SVC_SYNC_INTERVAL: "1s" } });

  rule("[SYNC-15] [SYNC-2] tells every space's status, then those of new and changed ones, never synced", async () => {
    const { client } = shared;
    const [a, b] = [await createSpace(client), await createSpace(client)];
    await using stream = await client.stream("GET", ALL);
    await stream.expect("ready");
    const first = [await stream.expect("status"), await stream.expect("status")] as JsonObject[];
    expect(first.map((status) => status["spaceId"]).sort()).toEqual([a.id, b.id].sort());
    for (const status of first)
      expect(status).toMatchObject({ synced: 0, total: 0, networkPeers: 0, localPeers: 0, lastSyncedAt: null });

    await createObject(client, a.id);
    const seen = await untilFrame(stream, ({ spaceId, total }) => spaceId === a.id && total === 1);
    expect(seen).toMatchObject({ synced: 0, p2p: "notpossible" });
    expect(["unknown", "offline"]).toContain(seen["state"] as string);
    expect(await client.get<unknown>(`/v1/spaces/${a.id}/sync-status`)).toMatchObject({ total: 1, synced: 0 });

    const c = await createSpace(client);
    await untilFrame(stream, ({ spaceId }) => spaceId === c.id);
    await untilFrame(stream, ({ spaceId, state }) => spaceId === c.id && state === "offline");
    await client.del(`/v1/spaces/${c.id}`);
    await createObject(client, b.id);
    await untilFrame(stream, ({ spaceId, total }) => spaceId === b.id && total === 1);
    expect(stream.rawText()).not.toContain('"state":"synced"');
  });

  rule("[SYNC-15] tells the object's status; unknown ids are unknown, a deleted object too", async () => {
    const { client } = shared;
    const space = await createSpace(client);
    const object = await createObject(client, space.id);
    const path = `/v1/spaces/${space.id}/sync-status/objects`;
    await client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
    await using stream = await client.stream("GET", `${path}/${object.id}/subscribe`);
    await stream.expect("ready");
    expect(await stream.expect("status")).toEqual({ objectId: object.id, state: "offline", lastSyncAt: null });
    await client.del(`/v1/spaces/${space.id}/objects/${object.id}`);
    expect(await stream.expect("status")).toEqual({ objectId: object.id, state: "unknown", lastSyncAt: null });

    await using unknown = await client.stream("GET", `${path}/${ABSENT}/subscribe`);
    await unknown.expect("ready");
    expect(await unknown.expect("status")).toMatchObject({ objectId: ABSENT, state: "unknown" });
    expect(await client.get<unknown>(`${path}/${ABSENT}`)).toMatchObject({ state: "unknown", lastSyncAt: null });
  });

  rule("[SYNC-18] debug tells of an object how far it is, and of a space nobody before a round", async () => {
    const { client } = shared;
    const space = await createSpace(client);
    const object = await createObject(client, space.id);
    const path = `/v1/spaces/${space.id}/debug`;
    const debug = await client.get<JsonObject>(path);
    expect(debug).toMatchObject({ spaceId: space.id, peers: [], parked: 0, quarantined: [], alarms: [], proposals: 0 });
    // Nobody else keeps the space's index, the object's root and its content, and the root of the rights.
    expect(debug).toMatchObject({ unconfirmed: 3, unconfirmedRights: 1 });
    const ofObject = async () => client.get<JsonObject>(`${path}/objects/${object.id}`);
    const { changes } = await client.get<{ changes: { version: string }[] }>(
      `/v1/spaces/${space.id}/objects/${object.id}/history`,
    );
    const before = await ofObject();
    expect(before).toMatchObject({
      ...{ objectId: object.id, pending: 2, lastSyncAt: null, treeLen: 2, snapshots: 0 },
      ...{ heads: [changes[0]!.version], headsCount: 1, branchCount: 1 },
    });
    const name = [{ type: "$set", path: "svc.name", value: "named" }];
    const records = [{ id: object.id, ops: name }];
    await client.post(`/v1/spaces/${space.id}/modify`, { objectId: object.id, dataset: "objects", records });
    const after = await ofObject();
    expect(after).toMatchObject({ pending: 3, treeLen: 3, headsCount: 1 });
    expect(String(after["latestVersionId"]) > String(before["latestVersionId"])).toBe(true);
    expect(Number(after["maxAddSeq"])).toBeGreaterThan(Number(before["maxAddSeq"]));
    await client.fails("GET", `${path}/objects/${ABSENT}`, undefined, 404, "object.not_found");
  });

  rule("[API-11] [API-19] faults: the space resolution errors, id faults, and what is not offered", async () => {
    const { client } = shared;
    const space = await createSpace(client);
    const { id: gone } = await createSpace(client);
    await client.del(`/v1/spaces/${gone}`);
    const other = await startServer({});
    const identity = (await other.client.get<{ id: string }>("/v1/account")).id;
    await other[Symbol.asyncDispose]();
    await client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity: identity }, 204);
    const [pending] = await client.get<{ id: string }[]>("/v1/spaces?status=one_to_one_pending");
    const faults = [
      [ABSENT, 404, "space.not_found"],
      [gone, 409, "space.deleted"],
      [pending!.id, 409, "space.not_accepted"],
    ] as const;
    for (const [id, status, code] of faults) {
      const base = `/v1/spaces/${id}`;
      for (const path of ["sync-status", `sync-status/objects/${ABSENT}`, `sync-status/objects/${ABSENT}/subscribe`])
        await client.fails("GET", `${base}/${path}`, undefined, status, code);
      await client.fails("POST", `${base}/sync`, {}, status, code);
    }
    const base = `/v1/spaces/${space.id}/sync-status`;
    await client.fails("GET", `${base}/objects/undefined`, undefined, 400, "object.id_required");
    await client.fails("GET", `${base}/objects/null/subscribe`, undefined, 400, "object.id_required");
    await client.fails("GET", `${base}/peers`, undefined, 501, "sdk.not_implemented");
  });

  rule(
    "[ACC-5] [LIVE-1] without an account the streams are auth.required; a stopping server ends them with closed",
    async () => {
      await using bare = await startServer({ account: false });
      await bare.client.fails("GET", ALL, undefined, 401, "auth.required");
      await bare.client.fails("GET", `/v1/spaces/${ABSENT}/sync-status`, undefined, 401, "auth.required");

      await using server = await startServer();
      const space = await createSpace(server.client);
      const object = await createObject(server.client, space.id);
      await using all = await server.client.stream("GET", ALL);
      const path = `/v1/spaces/${space.id}/sync-status/objects/${object.id}/subscribe`;
      await using one = await server.client.stream("GET", path);
      await all.expect("ready");
      await one.expect("ready");
      server.signal("SIGTERM");
      for (const stream of [all, one]) expect((await stream.untilClosed()).reason).toBe("server_shutdown");
    },
  );
});

describeWithNats("sync status with a network", () => {
  rule(
    "[SYNC-15] with many spaces whose states change at once the last word on each is true",
    async () => {
      await using nats = await startNats();
      await using server = await startServer({ env: { SVC_NETWORK_URL: nats.url, SVC_SYNC_INTERVAL: "1s" } });
      const { client } = server;
      const spaces = await Promise.all(Array.from({ length: MANY }, () => createSpace(client)));
      await using stream = await client.stream("GET", ALL);
      await stream.expect("ready");
      const states = new Map<unknown, unknown>();
      const untilAll = async (state: string): Promise<void> => {
        while (spaces.some(({ id }) => states.get(id) !== state)) {
          const { event, data } = (await stream.next(30_000))!;
          if (event === "status") states.set((data as JsonObject)["spaceId"], (data as JsonObject)["state"]);
        }
      };
      await untilAll("synced");
      await nats.kill();
      await untilAll("offline");
      await nats.start();
      await untilAll("synced");
    },
    90_000,
  );

  rule(
    "[SYNC-17] goes from syncing to synced, offline when the network is gone, and back",
    async () => {
      await using nats = await startNats();
      await using server = await startServer({ env: { SVC_NETWORK_URL: nats.url, SVC_SYNC_INTERVAL: "1s" } });
      const { client } = server;
      const space = await createSpace(client);
      await using spaces = await client.stream("GET", ALL);
      await spaces.expect("ready");
      const object = await createObject(client, space.id);
      await using objects = await client.stream(
        "GET",
        `/v1/spaces/${space.id}/sync-status/objects/${object.id}/subscribe`,
      );
      await objects.expect("ready");
      const synced = await untilFrame(spaces, ({ state, total }) => state === "synced" && total === 1);
      expect(synced).toMatchObject({ spaceId: space.id, synced: 1, networkPeers: 1, lastSyncedAt: expect.any(String) });
      expect(await untilFrame(objects, ({ state }) => state === "synced")).toMatchObject({
        lastSyncAt: expect.any(String),
      });

      await nats.kill();
      expect(await untilFrame(spaces, ({ state }) => state === "offline")).toMatchObject({
        networkPeers: 0,
        synced: 1,
      });
      await untilFrame(objects, ({ state }) => state === "offline");
      await createObject(client, space.id);
      const behind = await untilFrame(spaces, ({ total }) => total === 2);
      expect(behind).toMatchObject({ state: "offline", synced: 1 });

      await nats.start();
      const between: unknown[] = [];
      await untilFrame(spaces, ({ state, synced: count }) => {
        between.push(state === "synced" ? count : state);
        return state === "synced";
      });
      expect(between.at(-1)).toBe(2);
      await untilFrame(objects, ({ state }) => state === "synced");
    },
    90_000,
  );
});
