import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addAccounts } from "../../acl/actions.ts";
import { equalBytes } from "../../base/bytes.ts";
import { systemClock } from "../../base/clock.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import type { PeerId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import type { ChangeBody } from "../../change/codec/change-body.ts";
import { type Change, decodeChange, encodeChange, encodeHeader } from "../../change/codec/change-codec.ts";
import { changeIdOf, stubOf } from "../../change/codec/change-stub.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { DELETION_RULES } from "../../change/fold/deletion-log.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { RulesRegistry } from "../../change/ports.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { createSigner } from "../../crypto/sign.ts";
import type { SpaceGenesis } from "../../space/genesis.ts";
import { coversAll, hasOurBodies, vectorOf } from "../../space/replica/own-vector.ts";
import { createdSpaceGenesis, openSpace, type Space, writeGenesis } from "../../space/space.ts";
import { writerKey } from "../../space/version-vector.ts";
import { CHANNEL_LIMITS } from "../lan/message-channel.ts";
import { fetchAcl } from "./acl-fetch.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import { givesBack } from "./confirm.ts";
import { askState, fetchMissing } from "./fetch.ts";
import {
  decodeAclRequest,
  decodeItems,
  decodePullReply,
  decodePullRequest,
  decodeStateRequest,
  decodeVectorRequest,
  decodeWants,
  encodeItems,
  encodePullReply,
  encodeState,
  encodeVectorPage,
  SessionFault,
} from "./messages.ts";
import { stateFor } from "./own-state.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";
import { vectorPage } from "./vector-parts.ts";

const ITEMS: DatasetRules = { name: "items", idRule: "user" };
const directories: string[] = [];
const opened: Space[] = [];

afterEach(async () => {
  for (const space of opened.splice(0)) await space.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function newAccount(): Account {
  const seed = randomBytes(32);
  const signer = createSigner(seed);
  return { id: accountIdOf(signer.publicKey), peerId: "test" as PeerId, seed, signer };
}

/** Rules of `items`, and of `notes` once `defs` has brought their definition: a record of the type object. */
function definitions(): RulesRegistry {
  const known = new Set<string>();
  return {
    rulesFor(dataset, definition) {
      if (dataset === "notes" && definition !== undefined && !known.has(definition)) return { missing: definition };
      if (dataset === DELETION_RULES.name) return { rules: DELETION_RULES };
      return ["items", "defs", "notes"].includes(dataset) ? { rules: { ...ITEMS, name: dataset } } : { unknown: true };
    },
    learn(objectId, body) {
      if (body.dataset !== "defs") return [];
      const names = body.records.map(({ id }) => `${objectId}/${id}`);
      for (const name of names) known.add(name);
      return names;
    },
    outlives: (dataset) => dataset === "defs",
  };
}

function replicaOf(seed: SpaceGenesis, account: Account): Space {
  const directory = mkdtempSync(join(tmpdir(), "svc-session-"));
  directories.push(directory);
  const path = join(directory, "space.db");
  writeGenesis(path, seed);
  const space = openSpace(path, seed.spaceId, {
    account,
    clock: systemClock,
    registry: definitions,
  });
  opened.push(space);
  return space;
}

/** One write to an object of the space's own. */
async function write(space: Space, id: string, text: string): Promise<void> {
  await space.engine.write((tx) => {
    const object = tx.ensureDerived("test.items", "");
    const ops = [{ type: "$set" as const, path: "text", value: text }];
    tx.append(object, { dataset: "items", records: [{ id, upsert: true, ops }] }, ITEMS);
  });
}

function rows(space: Space): string {
  const object = space.engine.object(space.engine.derivedId("test.items", ""));
  const collectionId = object && space.engine.collectionIdOf(object, "items");
  return collectionId === undefined ? "" : space.engine.store.rows.docs(collectionId).sort().join("\n");
}

/** Writers that both replicas have, with one change each. What it says nobody asks: neither lacks it. */
function addWriters(spaces: readonly Space[], author: Uint8Array, count: number): void {
  const made = Array.from({ length: count }, () => ({ writer: randomBytes(16), id: randomBytes(32) }));
  for (const { engine } of spaces) {
    const { db } = engine.store;
    const addWriter = db.query<{ no: number }, [Uint8Array, Uint8Array, Uint8Array]>(
      "INSERT INTO writers(author, id, seq, last) VALUES(?, ?, 1, ?) RETURNING no",
    );
    const addChange = db.query<null, [Uint8Array, number]>(
      "INSERT INTO changes(id, objectNo, lamport, writer, seq, acl_pos, time, datasetNo, counts, bytes) VALUES(?, 0, 1, ?, 1, 0, 0, 0, 1, x'00')",
    );
    db.transaction(() => {
      for (const { writer, id } of made) addChange.run(id, addWriter.get(author, writer, id)!.no);
    })();
  }
}

/** A replica whose every message, either way, is as large as a link takes at most. */
function measured(remote: RemoteReplica): RemoteReplica & { largest: () => number; asked: (kind: string) => number } {
  let largest = 0;
  const asked: string[] = [];
  return {
    largest: () => largest,
    asked: (kind) => asked.filter((each) => each === kind).length,
    async request(kind, body) {
      const reply = await remote.request(kind, body);
      asked.push(kind);
      largest = Math.max(largest, body.length, reply.length);
      return reply;
    },
  };
}

type Tamper = (kind: string, reply: Uint8Array) => Uint8Array;

/** The other side of a session as the LAN serves it, for a reader who may have the content or not. */
function remoteOf(space: Space, reader: Account, tamper: Tamper = (_kind, reply) => reply): RemoteReplica {
  const answer = (kind: string, body: Uint8Array): Uint8Array => {
    if (kind === SYNC_KINDS.state)
      return encodeState(stateFor(space.replica, decodeStateRequest(body), space.replica.acl.mayRead(reader.id)));
    if (kind === SYNC_KINDS.pull) return encodePullReply(space.replica.pull(decodePullRequest(body)));
    if (kind === SYNC_KINDS.vector)
      return encodeVectorPage(vectorPage(vectorOf(space).vector, decodeVectorRequest(body).after));
    if (kind === SYNC_KINDS.wants) return encodeItems(space.replica.changesNamed(decodeWants(body).ids));
    if (kind === SYNC_KINDS.acl) return encodeItems(space.replica.acl.recordsFrom(decodeAclRequest(body).from));
    return encodeItems(space.replica.acl.pending());
  };
  return { request: async (kind, body) => new Uint8Array(tamper(kind, answer(kind, new Uint8Array(body)))) };
}

async function pullAll(from: RemoteReplica, into: Space) {
  const state = await askState(from, into.replica);
  expect(await fetchAcl(from, into.replica, state)).toBeUndefined();
  return { state, fetched: await fetchMissing(from, into.replica, state.vector) };
}

describe("sessions", () => {
  test("[frames] a long history comes in bounded frames, parents first, and both ends are equal", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
    await Promise.all(Array.from({ length: 1200 }, (_, i) => write(a, `r${i % 40}`, `text ${i}`)));
    let frames = 0;
    const { fetched } = await pullAll(
      remoteOf(a, account, (kind, reply) => {
        if (kind === SYNC_KINDS.pull) {
          frames++;
          expect(decodePullReply(reply).changes.length).toBeLessThanOrEqual(500);
        }
        return reply;
      }),
      b,
    );
    expect(frames).toBeGreaterThan(2);
    expect(fetched).toMatchObject({ missing: false, refused: 0, foreignOwn: false });
    expect(rows(b)).toBe(rows(a));
    expect(coversAll(a, vectorOf(b).vector)).toBe(true);
    expect((await askState(remoteOf(a, account), b.replica)).same).toBe(true);
    await write(a, "one", "more");
    expect((await pullAll(remoteOf(a, account), b)).fetched.changed).toBe(1);
  }, 20_000);

  test("[vector] more writers than are held at once: the session goes as far as it can, and the next goes on", async () => {
    const account = newAccount();
    const a = replicaOf(createdSpaceGenesis(account, systemClock), account);
    await write(a, "before", "here");
    const all = Array.from({ length: SYNC_BOUNDS.writersInAll + 20_000 }, (_, index) => {
      const writer = new Uint8Array(16);
      new DataView(writer.buffer).setUint32(12, index);
      return {
        author: account.signer.publicKey,
        writer,
        seq: 1,
        count: 1,
        last: new Uint8Array(32),
        forks: new Uint8Array(0),
      };
    });
    const indexOf = (after: Uint8Array) =>
      after.length === 0 ? 0 : new DataView(new Uint8Array(after).slice(32).buffer).getUint32(12) + 1;
    const page = (from: number) => ({
      vector: all.slice(from, from + SYNC_BOUNDS.writers),
      rest: from + SYNC_BOUNDS.writers < all.length,
    });
    const remote: RemoteReplica = {
      request: async (kind, body) =>
        kind === SYNC_KINDS.state
          ? encodeState({ ...stateFor(a.replica, decodeStateRequest(body), true), same: false, ...page(0) })
          : encodeVectorPage(page(indexOf(decodeVectorRequest(body).after))),
    };
    const state = await askState(remote, a.replica);
    expect(state.isPart).toBe(true);
    expect(state.vector.length).toBeGreaterThanOrEqual(SYNC_BOUNDS.writersInAll);
    expect(state.vector.length).toBeLessThan(all.length);
  });

  test("[vector] 50,000 writers take messages that fit a link, and each side gets what it lacks", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b, empty] = [replicaOf(seed, account), replicaOf(seed, account), replicaOf(seed, account)];
    await write(a, "before", "on both");
    await pullAll(remoteOf(a, account), b);
    addWriters([a, b], account.signer.publicKey, 50_000);
    const same = measured(remoteOf(a, account));
    expect((await askState(same, b.replica)).same).toBe(true);
    expect(same.asked(SYNC_KINDS.vector)).toBe(0);

    for (const [space, name] of [
      [a, "a"],
      [b, "b"],
    ] as const)
      for (let i = 0; i < 20; i++) {
        await space.engine.mintWriter();
        await write(space, `${name}${i}`, `by writer ${i} of ${name}`);
      }
    for (const [from, into] of [
      [a, b],
      [b, a],
    ] as const) {
      const remote = measured(remoteOf(from, account));
      const { state, fetched } = await pullAll(remote, into);
      expect(fetched).toMatchObject({ missing: false, cut: false });
      expect(into.engine.store.parked.usage().count).toBe(0);
      expect(new Set(state.vector.map(({ author, writer }) => writerKey(author, writer))).size).toBe(
        vectorOf(from).vector.length,
      );
      expect(remote.largest()).toBeLessThan(CHANNEL_LIMITS.messageBytes / 2);
      expect(remote.asked(SYNC_KINDS.vector)).toBeGreaterThanOrEqual(12);
    }
    expect(rows(a)).toBe(rows(b));
    expect(coversAll(a, (await askState(remoteOf(b, account), empty.replica)).vector)).toBe(true);
    expect((await askState(remoteOf(a, account), b.replica)).same).toBe(true);
  }, 60_000);

  test("[hostile] a vector that does not go forward or never ends is a fault", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
    await write(a, "x", "text");
    const [own] = vectorOf(a).vector;
    const goesOn = encodeState({ ...(await askState(remoteOf(a, account), b.replica)), rest: true });
    for (const page of [
      { vector: [own!], rest: true },
      { vector: [], rest: true },
    ]) {
      const hostile = remoteOf(a, account, (kind, reply) => {
        if (kind === SYNC_KINDS.state) return goesOn;
        return kind === SYNC_KINDS.vector ? encodeVectorPage(page) : reply;
      });
      expect(await askState(hostile, b.replica).catch((error: unknown) => error)).toBeInstanceOf(SessionFault);
    }
  });

  test("[acl] rights travel first: a member added later gets everything, who is none gets the chain alone", async () => {
    const [owner, member] = [newAccount(), newAccount()];
    const seed = createdSpaceGenesis(owner, systemClock);
    const [a, b] = [replicaOf(seed, owner), replicaOf(seed, member)];
    await write(a, "x", "before");
    const stranger = await askState(remoteOf(a, member), b.replica);
    expect(stranger).toMatchObject({ known: true, content: false, vector: [] });
    await a.aclService.act((context) => addAccounts(context, [{ identity: member.id, permission: "writer" }]));
    await write(a, "x", "after");
    await pullAll(remoteOf(a, member), b);
    expect(b.role()).toBe("writer");
    expect(rows(b)).toBe(rows(a));
    await write(b, "y", "from the member");
    await pullAll(remoteOf(b, owner), a);
    expect(rows(a)).toBe(rows(b));
    expect(rows(a)).toContain("from the member");
  });

  test("[acl] an admin's proposal reaches the owner's device, which gives it effect, and comes back as a record", async () => {
    const [owner, admin, third] = [newAccount(), newAccount(), newAccount()];
    const seed = createdSpaceGenesis(owner, systemClock);
    const [a, b] = [replicaOf(seed, owner), replicaOf(seed, admin)];
    await a.aclService.act((context) => addAccounts(context, [{ identity: admin.id, permission: "admin" }]));
    await pullAll(remoteOf(a, admin), b);
    await b.aclService.propose((context) => addAccounts(context, [{ identity: third.id, permission: "reader" }]));
    expect(b.acl.permission(third.signer.publicKey)).toBe("none");
    await pullAll(remoteOf(b, owner), a);
    expect(a.acl.permission(third.signer.publicKey)).toBe("reader");
    await pullAll(remoteOf(a, admin), b);
    expect(b.acl.permission(third.signer.publicKey)).toBe("reader");
    expect(b.aclService.pending()).toEqual([]);
  });

  test("[verdicts] a broken change among good ones holds up none of them, and what follows it waits", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b, other] = [replicaOf(seed, account), replicaOf(seed, account), replicaOf(seed, account)];
    await write(a, "first", "1");
    await pullAll(remoteOf(a, account), other);
    await write(other, "elsewhere", "good");
    await write(a, "second", "2");
    await write(a, "third", "3");
    await pullAll(remoteOf(other, account), a);
    const broken = remoteOf(a, account, (kind, reply) => {
      if (kind !== SYNC_KINDS.pull) return reply;
      const frame = decodePullReply(reply);
      const changes = frame.changes.map((bytes, index) => {
        if (index !== 2) return bytes;
        const copy = new Uint8Array(bytes);
        copy[copy.length - 1]! ^= 1;
        return copy;
      });
      return encodePullReply({ ...frame, changes });
    });
    const { fetched } = await pullAll(broken, b);
    expect(rows(b)).toContain("good");
    // The parent of what waits was asked for by name, and came whole.
    expect(rows(b)).toBe(rows(a));
    expect(b.engine.store.parked.usage().count).toBe(0);
    expect(b.engine.store.parked.quarantineUsage().count).toBe(1);
    expect(fetched.missing).toBe(false);
  });

  test("[parked] thousands that wait for what nobody has do not keep one from being asked for that a peer has", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
    for (const text of ["1", "2", "3"]) await write(a, "same", text);
    const parent = vectorOf(a).vector[0]!;
    const secondId = a.engine.store.sync.idsOfWriter(parent.no, 2)[1]!.id;
    await b.engine.write(() => {
      for (let i = 0; i < 5_000; i++) {
        const waitFor = randomBytes(32);
        waitFor[0] = 0; // before the one that matters
        const change = { id: randomBytes(32), bytes: randomBytes(8), author: account.signer.publicKey, receivedMs: 0 };
        b.engine.store.parked.put({ ...change, waitKind: "change", waitFor });
      }
    });
    let asked = 0;
    const forgetful = remoteOf(a, account, (kind, reply) => {
      if (kind === SYNC_KINDS.wants) asked++;
      if (kind !== SYNC_KINDS.pull) return reply;
      const frame = decodePullReply(reply);
      const changes = frame.changes.filter((bytes) => !equalBytes(changeIdOf(bytes), secondId));
      return encodePullReply({ ...frame, changes });
    });
    await pullAll(forgetful, b);
    expect(asked).toBeLessThanOrEqual(SYNC_BOUNDS.idleWants);
    expect(rows(b)).not.toContain('"text":"3"');
    await pullAll(forgetful, b);
    expect(rows(b)).toContain('"text":"3"');
    expect(rows(b)).toBe(rows(a));
  });

  test("[status] a peer that claims more than it gives leaves us knowing that something is missing", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
    for (let i = 0; i < 5; i++) await write(a, `r${i}`, "text");
    const greedy = remoteOf(a, account, (kind, reply) =>
      kind === SYNC_KINDS.pull ? encodePullReply({ changes: [], next: 0, withheld: 0, needIds: [] }) : reply,
    );
    expect((await pullAll(greedy, b)).fetched.missing).toBe(true);
    expect((await pullAll(remoteOf(a, account), b)).fetched.missing).toBe(false);
  });

  test("[stubs] a peer that keeps the bodies to itself: they are missed, asked for by name, and got from another", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(seed, account), replicaOf(seed, account), replicaOf(seed, account)];
    for (let i = 0; i < 5; i++) await write(a, `r${i}`, "text");
    const withoutBodies = remoteOf(a, account, (kind, reply) => {
      if (kind === SYNC_KINDS.wants) return encodeItems(decodeItems(reply).map(stubOf));
      if (kind !== SYNC_KINDS.pull) return reply;
      const frame = decodePullReply(reply);
      return encodePullReply({ ...frame, changes: frame.changes.map(stubOf) });
    });
    await pullAll(withoutBodies, b);
    expect(b.engine.store.unopened.missingBodies(10)).toHaveLength(5);
    expect(rows(b)).toBe("");
    // The vectors are the same, and yet there is something to do. Nobody takes b to keep anything.
    const { state, fetched } = await pullAll(remoteOf(b, account), c);
    expect([state.same, hasOurBodies(a, state)]).toEqual([false, false]);
    expect(fetched.missing).toBe(true);
    expect((await askState(remoteOf(a, account), b.replica)).same).toBe(false);
    const { vector } = a.replica.vector();
    const nothing = new Uint8Array(32);
    const claim = a.replica.claimOf({ aclHead: nothing, pending: nothing, lacks: nothing, vector })!;
    expect(await givesBack(withoutBodies, a.replica, claim)).toBe(false);
    expect(await givesBack(remoteOf(a, account), a.replica, claim)).toBe(true);
    for (const replica of [b, c]) {
      expect((await pullAll(remoteOf(a, account), replica)).fetched.missing).toBe(false);
      expect(replica.engine.store.unopened.count()).toBe(0);
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

  test("[stubs] two that lack as many bodies, but others, give them to each other", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(seed, account), replicaOf(seed, account), replicaOf(seed, account)];
    for (let i = 0; i < 2; i++) await write(a, `r${i}`, "text");
    const [first, second] = a.engine.store.changes.after(0, 10).filter(({ writer }) => writer !== 0);
    await pullAll(
      stubbing(a, account, (bytes) => equalBytes(bytes, first!.bytes)),
      b,
    );
    await pullAll(
      stubbing(a, account, (bytes) => equalBytes(bytes, second!.bytes)),
      c,
    );
    expect([b, c].map(({ engine }) => engine.store.unopened.count())).toEqual([1, 1]);
    const { state } = await pullAll(remoteOf(b, account), c);
    expect([state.same, hasOurBodies(c, state)]).toEqual([false, false]);
    await pullAll(remoteOf(c, account), b);
    for (const replica of [b, c]) expect(rows(replica)).toBe(rows(a));
  });

  test("[stubs] a body that nobody has does not keep anybody from keeping the rest", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(seed, account), replicaOf(seed, account), replicaOf(seed, account)];
    await write(a, "lost", "text");
    for (const replica of [b, c])
      await pullAll(
        stubbing(a, account, () => true),
        replica,
      );
    expect(await askState(remoteOf(b, account), c.replica)).toMatchObject({ same: true });
    await write(b, "kept", "text");
    await pullAll(remoteOf(b, account), c);
    expect(rows(c)).toContain("kept");
    const state = await askState(remoteOf(c, account), b.replica);
    expect([state.same, hasOurBodies(b, state)]).toEqual([true, true]);
    await write(c, "more", "text"); // and also when they differ in what came since
    expect(hasOurBodies(b, await askState(remoteOf(c, account), b.replica))).toBe(true);
    expect(hasOurBodies(a, await askState(remoteOf(c, account), a.replica))).toBe(false);
  });

  test("[stubs] bodies that nobody has do not stand before others, and all that fit no frame come in several", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b, c] = [replicaOf(seed, account), replicaOf(seed, account), replicaOf(seed, account)];
    await Promise.all(Array.from({ length: 600 }, (_, i) => write(a, `r${i}`, "lost")));
    await pullAll(
      stubbing(a, account, () => true),
      b,
    );
    for (let i = 0; i < 30; i++) await write(b, `b${i}`, Buffer.from(randomBytes(60_000)).toString("base64"));
    await pullAll(
      stubbing(b, account, () => true),
      c,
    );
    expect(c.engine.store.unopened.count()).toBe(630);
    await pullAll(remoteOf(b, account), c);
    expect(c.engine.store.unopened.count()).toBe(600);
    expect(rows(c)).toBe(rows(b));
  });

  test("[stubs] one has the stub, the other the body that waits for its key: both have both in the end", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
    await write(a, "x", "text");
    await pullAll(remoteOf(a, account), b);
    const { header, id } = decodeChange(a.engine.store.changes.after(0, 10).at(-1)!.bytes) as Change;
    const over = { parents: [id], prev: id, seq: header.seq + 1, lamport: header.lamport + 1, keyId: randomBytes(16) };
    const { bytes } = encodeChange(encodeHeader({ ...header, ...over }), randomBytes(100), account.signer);
    expect((await a.engine.ingest([bytes]))[0]!.kind).toBe("parked");
    expect((await b.engine.ingest([stubOf(bytes)]))[0]!.kind).toBe("stored");
    await pullAll(remoteOf(b, account), a);
    await pullAll(remoteOf(a, account), b);
    for (const { engine } of [a, b]) {
      expect(engine.store.parked.usage().count).toBe(0);
      expect([engine.store.unopened.count(), engine.store.unopened.ofKind("key").length]).toEqual([1, 1]);
    }
    expect(await askState(remoteOf(b, account), a.replica)).toMatchObject({ same: true });
  });

  test("[stubs] the definition of a deleted type is asked for when something was written under it", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
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
    const isOfType = (bytes: Uint8Array) => a.engine.store.sync.placeOf(changeIdOf(bytes))?.objectNo === typeNo;
    const typeNo = a.engine.object(typeId)!.no;
    await a.engine.write((tx) => tx.deleteObject(tx.object(typeId)!));
    await pullAll(stubbing(a, account, isOfType), b);
    expect(b.engine.object(typeId)!.deleted).toBe(true);
    expect(b.engine.store.unopened.count()).toBe(0);
    await a.engine.write((tx) =>
      append(tx.ensureDerived("test.items", ""), tx, { dataset: "notes", definition: `${typeId}/v` }, "n"),
    );
    await pullAll(remoteOf(a, account), b);
    const notes = ({ engine }: Space) => {
      const object = engine.object(engine.derivedId("test.items", ""))!;
      return engine.store.rows.docs(engine.collectionIdOf(object, "notes") ?? -1);
    };
    expect(b.engine.store.parked.usage().count).toBe(0);
    expect(notes(b)).toEqual(notes(a));
    expect(notes(b)).toHaveLength(1);
  });

  test("[hostile] frames that do not go forward, ids asked for twice and torn messages end the session, not the server", async () => {
    const account = newAccount();
    const seed = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(seed, account), replicaOf(seed, account)];
    await write(a, "x", "text");
    const replies: [string, Uint8Array][] = [
      ["stuck", encodePullReply({ changes: [], next: 1, withheld: 0, needIds: [] })],
      ["torn", Uint8Array.of(0xa1, 0x61)],
      ["no map", encodeCbor([1, 2, 3])],
      ["other types", encodeCbor({ changes: "none", next: 0, withheld: 0, needIds: [] })],
      ["negative", encodeCbor({ changes: [], next: -1, withheld: 0, needIds: [] })],
    ];
    for (const [name, reply] of replies) {
      const hostile = remoteOf(a, account, (kind, honest) => (kind === SYNC_KINDS.pull ? reply : honest));
      const state = await askState(hostile, b.replica);
      const outcome = await fetchMissing(hostile, b.replica, state.vector).catch((error: unknown) => error);
      expect(outcome, name).toBeInstanceOf(SessionFault);
    }
    for (const decode of [decodePullRequest, decodeStateRequest, decodeWants, decodeAclRequest])
      for (const bytes of [
        new Uint8Array(0),
        Uint8Array.of(0xff),
        encodeCbor({ space: 1 }),
        encodeCbor(null),
        randomBytes(64),
      ])
        expect(() => decode(bytes)).toThrow(SessionFault);
    await pullAll(remoteOf(a, account), b);
    expect(rows(b)).toBe(rows(a));
  });
});
