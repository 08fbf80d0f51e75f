import { afterEach, describe, expect, test } from "bun:test";
import { createForger } from "../../../test/support/hostile/forged-change.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import {
  addWriters,
  closeReplicas,
  measured,
  pullAll,
  remoteOf,
  replicaOf,
  rows,
} from "../../../test/support/worlds/session-replicas.ts";
import { writeItem } from "../../../test/support/worlds/test-space.ts";
import { addAccounts } from "../../acl/compose/actions.ts";
import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { systemClock } from "../../base/clock.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import { randomBytes } from "../../base/random.ts";
import { changeIdOf } from "../../change/codec/change-stub.ts";
import { DEFAULT_PARK_QUOTA } from "../../change/intake/set-aside.ts";
import { statesIn, TheirVector } from "../../space/port/version-vector.ts";
import { coversAll, vectorOf } from "../../space/replica/own-vector.ts";
import { createdSpaceGenesis } from "../../space/space.ts";
import { CHANNEL_LIMITS } from "../lan/message-channel.ts";
import { askState } from "./ask-state.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import { fetchMissing } from "./fetch.ts";
import {
  decodeAclRequest,
  decodePullReply,
  decodePullRequest,
  decodeStateRequest,
  decodeVectorRequest,
  decodeWants,
  encodePullReply,
  encodeState,
  encodeVectorPage,
  SessionFault,
} from "./messages.ts";
import { stateFor } from "./own-state.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

afterEach(closeReplicas);

describe("sessions", () => {
  test("[SYNC-3] a long history comes in bounded frames, parents first, and both ends are equal", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    await Promise.all(Array.from({ length: 1200 }, (_, i) => writeItem(a, `r${i % 40}`, `text ${i}`)));
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
    expect(coversAll(a, new TheirVector([], statesIn(vectorOf(b).parts)))).toBe(true);
    expect((await askState(remoteOf(a, account), b.replica)).same).toBe(true);
    await writeItem(a, "one", "more");
    expect((await pullAll(remoteOf(a, account), b)).fetched.changed).toBe(1);
  }, 20_000);

  test("[SYNC-3] more writers than are held at once: the session goes as far as it can, and the next goes on", async () => {
    const account = createAccount();
    const a = replicaOf(createdSpaceGenesis(account, systemClock), account);
    await writeItem(a, "before", "here");
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
      shared: new Uint8Array(0),
      vector: all.slice(from, from + SYNC_BOUNDS.writers),
      rest: from + SYNC_BOUNDS.writers < all.length,
    });
    const remote: RemoteReplica = {
      request: async (kind, body) =>
        kind === SYNC_KINDS.state
          ? encodeState({ ...stateFor(a.replica, decodeStateRequest(body), true), same: false, rest: true })
          : encodeVectorPage(page(indexOf(decodeVectorRequest(body).after))),
    };
    const state = await askState(remote, a.replica);
    expect(state.isPart).toBe(true);
    expect(state.vector.states.length).toBeGreaterThanOrEqual(SYNC_BOUNDS.writersInAll);
    expect(state.vector.states.length).toBeLessThan(all.length);
  });

  test("[SYNC-3] 50,000 writers take messages that fit a link, and each side gets what it lacks", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b, empty] = [replicaOf(genesis, account), replicaOf(genesis, account), replicaOf(genesis, account)];
    await writeItem(a, "before", "on both");
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
        await writeItem(space, `${name}${i}`, `by writer ${i} of ${name}`);
      }
    for (const [from, into] of [
      [a, b],
      [b, a],
    ] as const) {
      const remote = measured(remoteOf(from, account));
      const { state, fetched } = await pullAll(remote, into);
      expect(fetched).toMatchObject({ missing: false, brokenOff: false });
      expect(into.store.parked.usage().count).toBe(0);
      expect(coversAll(from, state.vector)).toBe(true);
      expect(remote.largest()).toBeLessThan(CHANNEL_LIMITS.messageBytes / 2);
      // Parts that are the same are named alone.
      expect(remote.asked(SYNC_KINDS.vector)).toBe(1);
      expect(state.vector.states.length).toBeLessThan(5_000);
    }
    expect(rows(a)).toBe(rows(b));
    const whole = measured(remoteOf(b, account));
    expect(coversAll(a, (await askState(whole, empty.replica)).vector)).toBe(true);
    expect(whole.asked(SYNC_KINDS.vector)).toBeGreaterThanOrEqual(12);
    expect((await askState(remoteOf(a, account), b.replica)).same).toBe(true);
  }, 60_000);

  test("[SYNC-4] a vector that does not go forward or never ends is a fault", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    await writeItem(a, "x", "text");
    const [own] = statesIn(vectorOf(a).parts);
    const shared = new Uint8Array(0);
    const goesOn = encodeState({ ...(await askState(remoteOf(a, account), b.replica)), vector: [], rest: true });
    for (const page of [
      { shared, vector: [own!], rest: true },
      { shared, vector: [], rest: true },
    ]) {
      const hostile = remoteOf(a, account, (kind, reply) => {
        if (kind === SYNC_KINDS.state) return goesOn;
        return kind === SYNC_KINDS.vector ? encodeVectorPage(page) : reply;
      });
      expect(await askState(hostile, b.replica).catch((error: unknown) => error)).toBeInstanceOf(SessionFault);
    }
  });

  test("[ACL-14] rights travel first: a member added later gets everything, who is none gets the log alone", async () => {
    const [owner, member] = [createAccount(), createAccount()];
    const genesis = createdSpaceGenesis(owner, systemClock);
    const [a, b] = [replicaOf(genesis, owner), replicaOf(genesis, member)];
    await writeItem(a, "x", "before");
    const stranger = await askState(remoteOf(a, member), b.replica);
    expect(stranger).toMatchObject({ known: true, content: false });
    expect(stranger.vector.changes()).toBe(0);
    await a.aclService.act((context) => addAccounts(context, [{ identity: member.id, permission: "writer" }]));
    await writeItem(a, "x", "after");
    await pullAll(remoteOf(a, member), b);
    expect(b.role()).toBe("writer");
    expect(rows(b)).toBe(rows(a));
    await writeItem(b, "y", "from the member");
    await pullAll(remoteOf(b, owner), a);
    expect(rows(a)).toBe(rows(b));
    expect(rows(a)).toContain("from the member");
  });

  test("[ACL-15] an admin's proposal reaches the owner's device, which gives it effect, and comes back as a record", async () => {
    const [owner, admin, third] = [createAccount(), createAccount(), createAccount()];
    const genesis = createdSpaceGenesis(owner, systemClock);
    const [a, b] = [replicaOf(genesis, owner), replicaOf(genesis, admin)];
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

  test("[CHANGE-4] a broken change among good ones holds up none of them, and what follows it waits", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b, other] = [replicaOf(genesis, account), replicaOf(genesis, account), replicaOf(genesis, account)];
    await writeItem(a, "first", "1");
    await pullAll(remoteOf(a, account), other);
    await writeItem(other, "elsewhere", "good");
    await writeItem(a, "second", "2");
    await writeItem(a, "third", "3");
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
    expect(b.store.parked.usage().count).toBe(0);
    expect(b.store.parked.quarantineUsage().count).toBe(1);
    expect(fetched.missing).toBe(false);
  });

  test("[CHANGE-5] thousands that wait for what nobody has do not keep one from being asked for that a peer has", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    for (const text of ["1", "2", "3"]) await writeItem(a, "same", text);
    const parent = statesIn(vectorOf(a).parts)[0]!;
    const secondId = a.store.sync.idsOfWriter(parent.no, 2)[1]!.id;
    await b.engine.write(() => {
      for (let i = 0; i < 5_000; i++) {
        const waitFor = randomBytes(32);
        waitFor[0] = 0; // before the one that matters
        const change = { id: randomBytes(32), bytes: randomBytes(8), author: account.signer.publicKey, receivedMs: 0 };
        b.store.parked.put({ ...change, waitKind: "change", waitFor });
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
    expect(rows(b)).not.toContain('"v":"3"');
    await pullAll(forgetful, b);
    expect(rows(b)).toContain('"v":"3"');
    expect(rows(b)).toBe(rows(a));
  });

  test("[SYNC-2] a peer that claims more than it gives leaves us knowing that something is missing", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    for (let i = 0; i < 5; i++) await writeItem(a, `r${i}`, "text");
    const greedy = remoteOf(a, account, (kind, reply) =>
      kind === SYNC_KINDS.pull ? encodePullReply({ changes: [], next: 0, withheld: 0, needIds: [] }) : reply,
    );
    expect((await pullAll(greedy, b)).fetched.missing).toBe(true);
    expect((await pullAll(remoteOf(a, account), b)).fetched.missing).toBe(false);
  });

  test("[SYNC-4] frames that do not go forward, ids asked for twice and torn messages end the session, not the server", async () => {
    const account = createAccount();
    const genesis = createdSpaceGenesis(account, systemClock);
    const [a, b] = [replicaOf(genesis, account), replicaOf(genesis, account)];
    await writeItem(a, "x", "text");
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

  describe("a full quarantine", () => {
    const JUNK = 40;
    /** A peer with changes that are refused for good, a few a frame before all others; it leaves out what it is told of, or not. */
    async function junkyard(leavesOut: boolean) {
      const account = createAccount();
      const genesis = createdSpaceGenesis(account, systemClock);
      const a = replicaOf(genesis, account);
      await writeItem(a, "x", "text");
      const object = a.engine.object(a.engine.derivedId("test.items", ""))!;
      const forger = createForger(a, object, account.signer);
      const junk = Array.from({ length: JUNK }, () => forger.write(randomBytes(2_000), { space: randomBytes(32) }));
      const quota = { ...DEFAULT_PARK_QUOTA, quarantineBytes: 10_000 };
      const b = replicaOf(genesis, account, { quota });
      let frames = 0;
      const remote: RemoteReplica = {
        async request(kind, body) {
          const honest = await remoteOf(a, account).request(kind, body);
          if (kind !== SYNC_KINDS.pull) return honest;
          frames++;
          const request = decodePullRequest(body);
          const held = new Set(request.held.map(bytesToHex));
          const left = junk.filter(({ id }) => !(leavesOut && held.has(bytesToHex(id))));
          const given = left.slice(2 * request.cursor, 2 * request.cursor + 2).map(({ bytes }) => bytes);
          if (given.length === 0) return honest;
          return encodePullReply({ changes: given, next: request.cursor + 1, withheld: 0, needIds: [] });
        },
      };
      return {
        ...{ a, b, owner: account },
        framesOf: async (round: () => Promise<unknown>) => {
          frames = 0;
          await round();
          return frames;
        },
        remote,
      };
    }

    test("[SYNC-4] does not fetch again what a peer leaves out when it is told of it, nor miss what counts", async () => {
      const { a, b, remote, framesOf } = await junkyard(true);
      expect(await framesOf(() => pullAll(remote, b))).toBe(JUNK / 2 + 1);
      expect(b.store.parked.quarantineUsage().count).toBeLessThan(JUNK / 4);
      for (let round = 0; round < 3; round++) {
        await writeItem(a, "x", `text ${round}`);
        expect(await framesOf(() => pullAll(remote, b))).toBe(1);
        expect(rows(b)).toBe(rows(a));
      }
    });

    test("[SYNC-4] takes a frame a round, once the first are used up, of a peer that sends it again and again", async () => {
      const { a, b, owner, remote, framesOf } = await junkyard(false);
      const round = async () =>
        expect(await pullAll(remote, b).catch((error: unknown) => error)).toBeInstanceOf(SessionFault);
      await framesOf(() => pullAll(remote, b));
      expect(await framesOf(round)).toBe(SYNC_BOUNDS.junkFrames - JUNK / 2 + 2); // one more was asked for ahead
      for (let rounds = 0; rounds < 3; rounds++) expect(await framesOf(round)).toBe(2);
      expect((await pullAll(remoteOf(a, owner), b)).fetched.missing).toBe(false);
      expect(rows(b)).toBe(rows(a));
    });
  });
});
