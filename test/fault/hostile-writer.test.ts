/**
 * A member with the right to write who knows the format and means harm: what it signs ends with a verdict on the owner's
 * server and on an honest member's, costs no more than its bound, and the space goes on, alike on both.
 */
import { afterAll, beforeAll, beforeEach, describe, expect } from "bun:test";
import { encodeDerivedRoot } from "../../src/change/codec/change-codec.ts";
import { DELETIONS_DATASET, DELETIONS_TYPE } from "../../src/change/fold/deletion-log.ts";
import { cidFromDigest, digestOfCid } from "../../src/crypto/cid.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { boundsOf } from "../support/hostile/attack-bounds.ts";
import { type Besieged, besiege } from "../support/hostile/besieged.ts";
import { bodyBytes, createForgerFor, setOf } from "../support/hostile/forged-change.ts";
import { memoryOf } from "../support/hostile/hostile-peer.ts";
import { rule } from "../support/rule.ts";
import { type Json, type JsonObject, type Row, type SpaceInfo, until } from "../support/server/client.ts";
import type { Device } from "../support/server/devices.ts";
import { type Collection, createCollection, openCollection } from "../support/server/fixtures.ts";

const LONG_MS = 110_000;
const WAIT_MS = 45_000;
const BOUNDS = boundsOf("a member with the right to write");

interface Ensured {
  bundle: { id: string; rootId: string };
  installed: boolean;
}

describe("a hostile writer", () => {
  let besieged: Besieged;
  let items: Collection;

  const onServers = () => [besieged.server, besieged.honest];
  const rowsAt = async (device: Device): Promise<Row[]> =>
    (await openCollection(device.server.client, items).query({ sort: ["id"], limit: 500 })).records;
  /** A writer's chain on the collection's object, and how a body of it is written. */
  const attack = async (object = digestOfCid(items.objectId)!) => {
    const peer = await besieged.join();
    const { world, owner, writer } = besieged;
    const forge = await createForgerFor(peer, { world, member: owner, object, signer: writer.signer });
    const definition = forge.bodies.findLast(({ dataset }) => dataset === items.dataset)?.definition;
    const head = `"dataset":"${items.dataset}","definition":"${definition}"`;
    const records = (...entries: string[]) => bodyBytes(`{${head},"records":[${entries.join()}]}`);
    const push = (changes: readonly Uint8Array[]) => peer.push(besieged.spaceId, besieged.offer([changes]));
    return { peer, forge, head, records, push };
  };
  /** An honest write after the attack arrives, and both servers show the same rows. */
  const goesOnAlike = async (): Promise<void> => {
    await besieged.goesOn();
    const id = `after-${crypto.randomUUID()}`;
    await items.upsert([{ id, fields: { n: 1 } }]);
    let shown: Row[][] = [];
    await until(
      async () => {
        shown = await Promise.all(onServers().map(rowsAt));
        return shown[1]!.some((row) => row.id === id) && JSON.stringify(shown[0]) === JSON.stringify(shown[1]);
      },
      "the same rows on both",
      WAIT_MS,
    );
  };

  beforeAll(async () => {
    besieged = await besiege();
    items = await createCollection(besieged.server.server.client, besieged.spaceId, { dynamic: true });
    await items.upsert([{ id: "first", fields: { n: 0 } }]);
    // Before the object has come the other says that it knows none.
    const { client } = besieged.honest.server;
    const hasCome = async () =>
      (await client.request("POST", `${items.path}/query`, { body: { ...items.target, limit: 1 } })).status === 200;
    await until(hasCome, "the object at the other", WAIT_MS);
    await goesOnAlike();
    await besieged.meetAgain();
  }, LONG_MS);
  beforeEach(() => besieged.partAll());
  afterAll(() => besieged?.[Symbol.asyncDispose](), 30_000);

  rule(
    "[CHANGE-3] times beyond every date and values nested thousands deep: quarantined or without effect, and nothing is asked for again",
    async () => {
      const own = await attack(digestOfCid(besieged.objectId)!);
      const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const row = (value: string) =>
        bodyBytes(`{"dataset":"objects","records":[${setOf(besieged.objectId, "svc.deep", value)}]}`);
      const nested = [1_010, 50_000].map((depth) => own.forge.write(row(deep(depth))));
      await own.push(nested.map(({ bytes }) => bytes));
      const { forge, records, push } = await attack();
      const { writer, world, owner } = besieged;
      const ahead = [];
      for (const time of [8.64e15 + 1, 253_402_300_800_000, Number.MAX_SAFE_INTEGER]) {
        const peer = await besieged.join();
        const object = digestOfCid(items.objectId)!;
        const each = await createForgerFor(peer, { world, member: owner, object, signer: writer.signer });
        ahead.push(each.write(records(setOf("x", "n", "1")), { time }));
      }
      const deepItems = [1_010, 50_000].map((depth) => forge.write(records(setOf("deep", "n", deep(depth)))));
      await push([...ahead, ...deepItems].map(({ bytes }) => bytes));
      const { quarantined } = await besieged.debug();
      const reasons = new Map(quarantined.map(({ id, code }) => [id, code]));
      for (const { id } of [...nested, ...deepItems]) expect(reasons.get(cidFromDigest(id))).toBe("change.no_body");
      expect(quarantined.filter(({ reason }) => reason.startsWith("time is"))).toHaveLength(ahead.length);
      expect((await rowsAt(besieged.server)).map(({ id }) => id)).not.toContain("deep");
      await goesOnAlike();
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-3] trace ids by the hundred thousand, and records that grow without end, take no disk beyond their bounds",
    async () => {
      const before = besieged.bytesOnDisk();
      const memory = memoryOf(besieged.server);
      const { forge, head, records, push } = await attack();
      const traceIds = JSON.stringify(Array.from({ length: 100_000 }, (_, i) => `t${i}`));
      const many = Array.from({ length: 2_000 }, (_, i) => `{"id":"r${i}","upsert":true,"ops":[]}`).join();
      const part = JSON.stringify("x".repeat(200_000));
      const traced = forge.write(bodyBytes(`{${head},"records":[${many}],"traceIds":${traceIds}}`));
      const changes = [traced];
      for (let i = 0; i < 100; i++) changes.push(forge.write(records(setOf("big", `s${i}`, part))));
      await push(changes.map(({ bytes }) => bytes));
      const { quarantined } = await besieged.debug();
      expect(quarantined.find(({ id }) => id === cidFromDigest(traced.id))?.reason).toBe(
        "the sealed bytes are no body",
      );
      const rows = await rowsAt(besieged.server);
      expect(rows.filter(({ id }) => id.startsWith("r"))).toEqual([]);
      const big = Buffer.byteLength(JSON.stringify(rows.find(({ id }) => id === "big")));
      expect(big).toBeGreaterThan(LIMITS.recordBytes / 2);
      expect(big).toBeLessThanOrEqual(LIMITS.recordBytes);
      expect(besieged.bytesOnDisk() - before).toBeLessThan(BOUNDS.diskMiB << 20);
      expect(memoryOf(besieged.server) - memory).toBeLessThan(BOUNDS.memoryMiB << 20);
      await goesOnAlike();
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-8] deletions of the space's index, of the log of deletions and of a bundle's root delete nothing: it is renamed, and the bundle used, as before",
    async () => {
      const { server, spaceId } = besieged;
      const base = `/v1/spaces/${spaceId}`;
      const { spaceIndexObjectId } = await server.server.client.get<SpaceInfo>(base);
      const space = digestOfCid(spaceId)!;
      const log = encodeDerivedRoot({ space, type: DELETIONS_TYPE, derivation: "" });
      // An honest deletion makes the log, so that there is one to write to.
      const gone = await createCollection(server.server.client, spaceId);
      await server.server.client.del(`${base}/objects/${gone.objectId}`, 204);
      const { forge, push } = await attack(log.id);
      const derived = { id: "derived/v1", derived: true };
      const ensured = await server.server.client.post<Ensured>(`${base}/bundles`, derived);
      const ids = [spaceIndexObjectId!, cidFromDigest(log.id), ensured.bundle.rootId];
      const entries = ids.map((id) => `{"id":"${id}","upsert":true,"ops":[]}`).join();
      await push([
        log.bytes,
        forge.write(bodyBytes(`{"dataset":"${DELETIONS_DATASET}","records":[${entries}]}`)).bytes,
      ]);
      for (const name of ["renamed", "renamed again"]) {
        await server.server.client.patch(base, { name }, 204);
        for (const device of onServers())
          await until(
            async () => (await device.server.client.get<SpaceInfo>(base)).name === name,
            `the space to be ${name}`,
            WAIT_MS,
          );
      }
      await goesOnAlike();
      for (const { server } of onServers()) {
        const { client } = server;
        const listed = async () => (await client.get<{ bundles: Ensured["bundle"][] }>(`${base}/bundles`)).bundles;
        await until(async () => (await listed()).some(({ id }) => id === derived.id), "the bundle", WAIT_MS);
        expect(await client.post<Ensured>(`${base}/bundles`, derived)).toEqual({ ...ensured, installed: false });
        await client.post(`${base}/bundles/${encodeURIComponent(derived.id)}/children`, { seed: server.address });
      }
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-2] -0, numbers beyond doubles and lone surrogates in values and ids fold alike on both",
    async () => {
      const { forge, records, push } = await attack();
      const set = (id: string, path: string, value: string) =>
        `{"id":${id},"upsert":true,"ops":[{"type":"$set","path":"${path}","value":${value}}]}`;
      const changes = [
        records(set('"v"', "t", `[-0,-0.0,-1e-400,0,"\\ud800","\\ufffd",1e400,null]`)),
        records(
          `{"id":"v","ops":[{"type":"$addToSet","path":"t","value":0},{"type":"$addToSet","path":"t","value":"\\udfff"}]}`,
        ),
        records(`{"id":"v","ops":[{"type":"$pull","path":"t","value":-0}]}`),
        records(set('"\\ud800"', "n", "1"), set('"\\ud801"', "n", "2"), set('"x\\udfff"', "n", "3")),
        records('{"id":"x\\udfff","delete":true,"ops":[]}'),
      ].map((plain) => forge.write(plain).bytes);
      await push(changes);
      await goesOnAlike();
      const rows = await rowsAt(besieged.server);
      const value = rows.find(({ id }) => id === "v")! as JsonObject;
      expect(value["t"]).toEqual(["\ufffd", "\ufffd", null, null] as Json);
      expect(rows.every(({ id }) => id.isWellFormed())).toBe(true);
    },
    LONG_MS,
  );
});
