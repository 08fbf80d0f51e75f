import { afterEach, describe, expect, test } from "bun:test";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { closeReplicas, pullAll, remoteOf, replicaOf, rows } from "../../../test/support/worlds/session-replicas.ts";
import { ITEMS, writeItem } from "../../../test/support/worlds/test-space.ts";
import { equalBytes } from "../../base/bytes.ts";
import { systemClock } from "../../base/clock.ts";
import { randomBytes } from "../../base/random.ts";
import type { ChangeBody } from "../../change/codec/change-body.ts";
import { type Change, decodeChange, encodeChange, encodeHeader } from "../../change/codec/change-codec.ts";
import { changeIdOf, stubOf } from "../../change/codec/change-stub.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import type { Account } from "../../crypto/account.ts";
import { statesIn, TheirVector } from "../../space/port/version-vector.ts";
import { hasOurBodies } from "../../space/replica/own-vector.ts";
import { createdSpaceGenesis, type Space } from "../../space/space.ts";
import { askState } from "./ask-state.ts";
import { givesBack } from "./confirm.ts";
import { decodeItems, decodePullReply, encodeItems, encodePullReply } from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

afterEach(closeReplicas);

describe("bodies that are not everywhere", () => {
  test("[CHANGE-7] a peer that keeps the bodies to itself: they are missed, asked for by name, and got from another", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(genesis, account), replicaOf(genesis, account), replicaOf(genesis, account)];
    for (let i = 0; i < 5; i++) await writeItem(a, `r${i}`, "text");
    const withoutBodies = remoteOf(a, account, (kind, reply) => {
      if (kind === SYNC_KINDS.wants) return encodeItems(decodeItems(reply).map(stubOf));
      if (kind !== SYNC_KINDS.pull) return reply;
      const frame = decodePullReply(reply);
      return encodePullReply({ ...frame, changes: frame.changes.map(stubOf) });
    });
    await pullAll(withoutBodies, b);
    expect(b.store.pendingBodies.missingBodies(10)).toHaveLength(5);
    expect(rows(b)).toBe("");
    // The vectors are the same, and yet there is something to do. Nobody takes b to keep anything.
    const { state, fetched } = await pullAll(remoteOf(b, account), c);
    expect([state.same, hasOurBodies(a, state)]).toEqual([false, false]);
    expect(fetched.missing).toBe(true);
    expect((await askState(remoteOf(a, account), b.replica)).same).toBe(false);
    const vector = new TheirVector([], statesIn(a.replica.vector().parts));
    const nothing = new Uint8Array(32);
    const claim = a.replica.claimOf({ aclHead: nothing, pending: nothing, lacks: nothing, vector })!;
    expect(await givesBack(withoutBodies, a.replica, claim)).toBe(false);
    expect(await givesBack(remoteOf(a, account), a.replica, claim)).toBe(true);
    for (const replica of [b, c]) {
      expect((await pullAll(remoteOf(a, account), replica)).fetched.missing).toBe(false);
      expect(replica.store.pendingBodies.count()).toBe(0);
      expect(rows(replica)).toBe(rows(a));
      expect(await askState(remoteOf(a, account), replica.replica)).toMatchObject({ same: true });
      expect(hasOurBodies(a, await askState(remoteOf(replica, account), a.replica))).toBe(true);
    }
  });

  /** Gives stubs of some changes instead of the changes. */
  const stubbing = (space: Space, reader: Account, isStubbed: (bytes: Uint8Array) => boolean): RemoteReplica =>
    remoteOf(space, reader, (kind, reply) => {
      const given = (changes: readonly Uint8Array[]) =>
        changes.map((bytes) => (isStubbed(bytes) ? stubOf(bytes) : bytes));
      if (kind === SYNC_KINDS.wants) return encodeItems(given(decodeItems(reply)));
      if (kind !== SYNC_KINDS.pull) return reply;
      const frame = decodePullReply(reply);
      return encodePullReply({ ...frame, changes: given(frame.changes) });
    });

  test("[CHANGE-7] two that lack as many bodies, but others, give them to each other", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(genesis, account), replicaOf(genesis, account), replicaOf(genesis, account)];
    for (let i = 0; i < 2; i++) await writeItem(a, `r${i}`, "text");
    const [first, second] = a.store.changes.after(0, 10).filter(({ writer }) => writer !== 0);
    await pullAll(
      stubbing(a, account, (bytes) => equalBytes(bytes, first!.bytes)),
      b,
    );
    await pullAll(
      stubbing(a, account, (bytes) => equalBytes(bytes, second!.bytes)),
      c,
    );
    expect([b, c].map(({ store }) => store.pendingBodies.count())).toEqual([1, 1]);
    const { state } = await pullAll(remoteOf(b, account), c);
    expect([state.same, hasOurBodies(c, state)]).toEqual([false, false]);
    await pullAll(remoteOf(c, account), b);
    for (const replica of [b, c]) expect(rows(replica)).toBe(rows(a));
  });

  test("[CHANGE-7] a body that nobody has does not keep anybody from keeping the rest", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(genesis, account), replicaOf(genesis, account), replicaOf(genesis, account)];
    await writeItem(a, "lost", "text");
    for (const replica of [b, c])
      await pullAll(
        stubbing(a, account, () => true),
        replica,
      );
    expect(await askState(remoteOf(b, account), c.replica)).toMatchObject({ same: true });
    await writeItem(b, "kept", "text");
    await pullAll(remoteOf(b, account), c);
    expect(rows(c)).toContain("kept");
    const state = await askState(remoteOf(c, account), b.replica);
    expect([state.same, hasOurBodies(b, state)]).toEqual([true, true]);
    await writeItem(c, "more", "text"); // and also when they differ in what came since
    expect(hasOurBodies(b, await askState(remoteOf(c, account), b.replica))).toBe(true);
    expect(hasOurBodies(a, await askState(remoteOf(c, account), a.replica))).toBe(false);
  });

  test("[CHANGE-7] bodies that nobody has do not stand before others, and all that fit no frame come in several", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(genesis, account), replicaOf(genesis, account), replicaOf(genesis, account)];
    await Promise.all(Array.from({ length: 600 }, (_, i) => writeItem(a, `r${i}`, "lost")));
    await pullAll(
      stubbing(a, account, () => true),
      b,
    );
    for (let i = 0; i < 30; i++) await writeItem(b, `b${i}`, Buffer.from(randomBytes(60_000)).toString("base64"));
    await pullAll(
      stubbing(b, account, () => true),
      c,
    );
    expect(c.store.pendingBodies.count()).toBe(630);
    await pullAll(remoteOf(b, account), c);
    expect(c.store.pendingBodies.count()).toBe(600);
    expect(rows(c)).toBe(rows(b));
  });

  test("[CHANGE-7] one has the stub, the other the body that waits for its key: both have both in the end", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    await writeItem(a, "x", "text");
    await pullAll(remoteOf(a, account), b);
    const { header, id } = decodeChange(a.store.changes.after(0, 10).at(-1)!.bytes) as Change;
    const over = { parents: [id], prev: id, seq: header.seq + 1, lamport: header.lamport + 1, keyId: randomBytes(16) };
    const { bytes } = encodeChange(encodeHeader({ ...header, ...over }), randomBytes(100), account.signer);
    expect((await a.engine.ingest([bytes]))[0]!.kind).toBe("parked");
    expect((await b.engine.ingest([stubOf(bytes)]))[0]!.kind).toBe("stored");
    await pullAll(remoteOf(b, account), a);
    await pullAll(remoteOf(a, account), b);
    for (const { store } of [a, b]) {
      expect(store.parked.usage().count).toBe(0);
      expect([store.pendingBodies.count(), store.pendingBodies.ofKind("key").length]).toEqual([1, 1]);
    }
    expect(await askState(remoteOf(b, account), a.replica)).toMatchObject({ same: true });
  });

  test("[CHANGE-7] the definition of a deleted type is asked for when something was written under it", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    const append = (object: ObjectEntry, tx: WriteTx, body: Omit<ChangeBody, "records">, id: string) => {
      const ops = [{ type: "$set" as const, path: "text", value: "text" }];
      tx.append(object, { ...body, records: [{ id, upsert: true, ops }] }, { ...ITEMS, name: body.dataset });
    };
    const typeId = await a.engine.write((tx) => {
      const type = tx.createObject();
      append(type, tx, { dataset: "items" }, "other");
      append(type, tx, { dataset: "defs" }, "v");
      return type.idText;
    });
    const isOfType = (bytes: Uint8Array) => a.store.sync.positionOf(changeIdOf(bytes))?.objectNo === typeNo;
    const typeNo = a.engine.object(typeId)!.no;
    await a.engine.write((tx) => tx.deleteObject(tx.object(typeId)!));
    await pullAll(stubbing(a, account, isOfType), b);
    expect(b.engine.object(typeId)!.deleted).toBe(true);
    expect(b.store.pendingBodies.count()).toBe(0);
    await a.engine.write((tx) =>
      append(tx.ensureDerived("test.items", ""), tx, { dataset: "notes", definition: `${typeId}/v` }, "n"),
    );
    await pullAll(remoteOf(a, account), b);
    const notes = ({ engine, store }: Space) => {
      const object = engine.object(engine.derivedId("test.items", ""))!;
      return store.rows.docs(engine.collectionIdOf(object, "notes") ?? -1);
    };
    expect(b.store.parked.usage().count).toBe(0);
    expect(notes(b)).toEqual(notes(a));
    expect(notes(b)).toHaveLength(1);
  });
});
