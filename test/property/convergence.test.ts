/**
 * The engine alone, several replicas in separate database files that exchange bytes only. Whatever was written where,
 * and in whatever order, how often and in what portions it was delivered: once everybody holds everything, the rows
 * are byte-identical everywhere and equal to the slow reference fold, which imports nothing of the engine.
 */
import { describe, expect } from "bun:test";
import { stubOf } from "../../src/change/codec/change-stub.ts";
import { batches, heal, planHistory, randomRecords, takeStep } from "../support/history.ts";
import {
  type DecodedChange,
  type Doc,
  equal,
  type FoldedState,
  referenceFold,
  type Value,
} from "../support/reference-fold.ts";
import { openWorld } from "../support/replica.ts";
import type { Forgery, Outcome, Packet, Replica, World } from "../support/replica-port.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { skipUnless } from "../support/skip.ts";

const HISTORIES = Number(process.env["HISTORIES"] ?? 100);
const firstSeed = runSeed("convergence");
/** Histories that once diverged, kept by name. */
const PAST_SEEDS: { name: string; seed: number }[] = [];

describe("random histories", () => {
  for (let i = 0; i < HISTORIES; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[convergence] history ${i}: replicas agree byte for byte and with the reference fold`,
      () => runHistory(seed),
      120_000,
    );
  }
  for (const past of PAST_SEEDS) rule(`[convergence] past failure: ${past.name}`, () => runHistory(past.seed), 120_000);
});

async function runHistory(seed: number): Promise<void> {
  const rng = createRng(seed);
  const plan = planHistory(rng);
  const log: string[] = [];
  try {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path, plan.checkpointEveryOps);
    const replicas = await createReplicas(world, plan.replicas);
    await meet(replicas);
    for (let step = 0; step < plan.steps; step++) {
      log.push(await takeStep(rng, replicas, plan));
      if (step % 10 === 9) await expectOwnFold(rng.pick(replicas));
    }
    await heal(rng, replicas);
    await expectAgreement(rng, world, replicas);
  } catch (error) {
    console.error(`SEED=${seed} HISTORIES=1\n${JSON.stringify(plan)}\n${log.join("\n")}`);
    throw error;
  }
}

/** All replicas and two late observers have the same bytes, and these are what the changes fold to. */
async function expectAgreement(rng: Rng, world: World, replicas: readonly Replica[]): Promise<void> {
  const rows = await replicas[0]!.rowTexts();
  for (const replica of replicas) {
    expect([replica.name, await replica.parked()]).toEqual([replica.name, []]);
    expect([replica.name, await replica.rowTexts()]).toEqual([replica.name, rows]);
  }
  expectFold(rows, referenceFold(await replicas[0]!.decoded()));

  const packets = await replicas[0]!.packets();
  for (const name of ["observer-1", "observer-2"]) {
    const observer = await world.createReplica(name);
    const delivered = rng.shuffle([...packets, ...packets.filter(() => rng.chance(0.1))]);
    for (const batch of batches(rng, delivered)) await observer.ingest(batch);
    expect([name, await observer.rowTexts()]).toEqual([name, rows]);
  }
  const observer = await world.createReplica("observer-3");
  const stubs = packets.filter(({ kind }) => kind === "change" && rng.chance(0.3)).map(stubPacket);
  for (const batch of batches(rng, rng.shuffle([...stubs, ...packets]))) await observer.ingest(batch);
  expect(["some bodies late", await observer.rowTexts()]).toEqual(["some bodies late", rows]);
  expect(await observer.parked()).toEqual([]);

  const one = rng.pick(replicas);
  await one.rebuild();
  expect(await one.rowTexts()).toEqual(rows);
  await one.reopen();
  expect(await one.rowTexts()).toEqual(rows);
}

/** A change without its body, as somebody has it who dropped that. */
const stubPacket = (packet: Packet): Packet => ({ ...packet, bytes: stubOf(packet.bytes) });

/** At any moment a replica shows the fold of what it holds by then. */
async function expectOwnFold(replica: Replica): Promise<void> {
  expectFold(await replica.rowTexts(), referenceFold(await replica.decoded()));
}

function expectFold(rowTexts: readonly string[], state: FoldedState): void {
  const live: [string, Doc][] = [];
  const gone: string[] = [];
  for (const text of rowTexts) {
    const { id, _ver, _traces, _deletedAt, ...fields } = JSON.parse(text) as Doc;
    expect(_ver).toBeDefined();
    expect(_traces).toBeUndefined();
    if (_deletedAt === undefined) live.push([id as string, fields]);
    else {
      expect([id, Object.keys(fields)]).toEqual([id!, []]); // a tombstone keeps only id, _deletedAt, _ver
      gone.push(id as string);
    }
  }
  expect(gone.sort()).toEqual([...state.tombstones].sort());
  expect(live.map(([id]) => id).sort()).toEqual([...state.docs.keys()].sort());
  for (const [id, fields] of live) {
    if (!equal(fields as Value, state.docs.get(id)!)) expect([id, fields]).toEqual([id, state.docs.get(id)!]);
  }
}

describe("one replica", () => {
  rule(
    "[convergence] what was asked for is what is stored: rows equal the fold of the requests themselves",
    async () => {
      for (let i = 0; i < 6; i++) {
        const rng = createRng(firstSeed).fork(`alone ${i}`);
        using dir = scratchDir("svc-world");
        await using world = await open(dir.path);
        const [replica] = await createReplicas(world, 1);
        const asked: DecodedChange[] = [];
        const plan = { steps: 40, records: 4 };
        for (let step = 0; step < plan.steps; step++) {
          const common = { id: `step-${step}`, lamport: step, author: "me", time: 0, counts: true };
          if (rng.chance(0.05)) {
            const id = `r${rng.int(0, plan.records - 1)}`;
            await replica!.deleteRecords([id]);
            asked.push({ ...common, records: [{ id, delete: true, ops: [] }] });
          } else {
            const records = randomRecords(rng, plan.records);
            await replica!.write(structuredClone(records)); // the fold takes values over and goes on changing them
            asked.push({ ...common, records });
          }
        }
        expectFold(await replica!.rowTexts(), referenceFold(asked));
      }
    },
    120_000,
  );
});

/** What the design says of each forgery, and the reasons that may be told together. */
const FORGERIES: { kind: Forgery; outcome: Outcome; family: string; says: string }[] = [
  {
    kind: "stranger",
    outcome: "discounted",
    family: "right",
    says: "a stranger's change is kept in the graph and does not count",
  },
  {
    kind: "acl-without-right",
    outcome: "discounted",
    family: "right",
    says: "a change at an ACL position without the right does not count",
  },
  { kind: "foreign-key", outcome: "parked", family: "key", says: "a change under a foreign key waits for the key" },
  { kind: "unknown-parent", outcome: "parked", family: "parent", says: "a change with an unknown parent waits for it" },
  { kind: "wrong-lamport", outcome: "refused", family: "lamport", says: "a clock ahead of its parents is refused" },
  { kind: "low-lamport", outcome: "refused", family: "lamport", says: "a clock behind its parents is refused" },
  { kind: "broken-chain", outcome: "refused", family: "chain", says: "a break in the writer's chain is refused" },
  { kind: "bad-signature", outcome: "refused", family: "signature", says: "a wrong signature is refused" },
  {
    kind: "bad-bytes",
    outcome: "refused",
    family: "encoding",
    says: "bytes that do not re-encode identically are refused",
  },
  { kind: "bad-text", outcome: "refused", family: "text", says: "text that is no UTF-8 is refused" },
  { kind: "other-space", outcome: "refused", family: "space", says: "another space's change is refused" },
];

describe("forged changes", () => {
  for (const { kind, outcome, says } of FORGERIES) {
    rule(
      `[forgery] ${kind}: ${says}; nothing else in its batch suffers`,
      async () => {
        using dir = scratchDir("svc-world");
        await using world = await open(dir.path);
        const [base, target] = await createReplicas(world, 2);
        await seedRows([base!, target!]);
        const { packet } = await world.forge(kind, base!);
        const rows = await target!.rowTexts();
        const [verdict] = await target!.ingest([packet]);
        expect(verdict).toMatchObject({ id: packet.id, outcome, reason: expect.any(String) });
        expect(await target!.rowTexts()).toEqual(rows);

        await base!.write([{ id: "before", upsert: true, ops: [{ type: "$set", path: "s", value: "v1" }] }]);
        await base!.write([{ id: "after", upsert: true, ops: [{ type: "$set", path: "s", value: "v2" }] }]);
        const honest = await lacking(base!, target!);
        expect(honest.length).toBeGreaterThanOrEqual(2);
        const verdicts = await target!.ingest([honest[0]!, packet, ...honest.slice(1)]);
        for (const good of honest) expect(verdicts.find((entry) => entry.id === good.id)?.outcome).toBe("applied");
        expect(await target!.rowTexts()).toEqual(await base!.rowTexts());

        await target!.reopen();
        await target!.rebuild();
        expect(await target!.rowTexts()).toEqual(await base!.rowTexts());
        const again = await target!.ingest([packet]);
        expect([outcome, "duplicate"]).toContain(again[0]!.outcome);
        expect(await target!.rowTexts()).toEqual(await base!.rowTexts());
      },
      60_000,
    );
  }

  rule(
    "[forgery] each is turned away for a reason of its own",
    async () => {
      using dir = scratchDir("svc-world");
      await using world = await open(dir.path);
      const [base, target] = await createReplicas(world, 2);
      await seedRows([base!, target!]);
      const reasonsByFamily = new Map<string, Set<string>>();
      for (const { kind, family } of FORGERIES) {
        const { packet } = await world.forge(kind, base!);
        const [verdict] = await target!.ingest([packet]);
        const reasons = reasonsByFamily.get(family) ?? new Set();
        reasonsByFamily.set(family, reasons.add(verdict!.reason ?? ""));
      }
      const all = [...reasonsByFamily.values()].flatMap((reasons) => [...reasons]);
      expect(all).not.toContain("");
      expect(new Set(all).size).toBe(all.length);
    },
    60_000,
  );

  rule("[forgery] unknown-parent: it counts as soon as the parent arrives", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [base, target] = await createReplicas(world, 2);
    await seedRows([base!, target!]);
    const { packet, missing } = await world.forge("unknown-parent", base!);
    await target!.ingest([packet]);
    expect(await target!.parked()).toEqual([packet.id]);
    await target!.reopen();
    expect(await target!.parked()).toEqual([packet.id]); // parked durably
    await target!.ingest([missing!]);
    expect(await target!.parked()).toEqual([]);
    await base!.ingest([missing!, packet]);
    expect(await target!.rowTexts()).toEqual(await base!.rowTexts());
    expectFold(await target!.rowTexts(), referenceFold(await target!.decoded()));
    expect((await target!.decoded()).map((change) => change.id)).toEqual(
      expect.arrayContaining([packet.id, missing!.id]),
    );
  });

  rule("[forgery] same-seq: both changes are kept and folded, everywhere alike, and the fork is seen", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [base, target] = await createReplicas(world, 2);
    await seedRows([base!, target!]);
    const { packet } = await world.forge("same-seq", base!);
    const [verdict] = await target!.ingest([packet]);
    expect(verdict!.outcome).toBe("applied");
    expect(await target!.forks()).toBe(1);
    await base!.ingest([packet]);
    expect(await base!.forks()).toBe(1);
    expect(await base!.rowTexts()).toEqual(await target!.rowTexts());
    await base!.write([{ id: "r0", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]);
    await heal(createRng(1), [base!, target!]);
    expect(await base!.rowTexts()).toEqual(await target!.rowTexts());
    expectFold(await base!.rowTexts(), referenceFold(await base!.decoded()));
  });

  rule("[forgery] forged-record-id: on an auto-id dataset nobody creates a record in another's name", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [base, target] = await createReplicas(world, 2);
    await seedRows([base!, target!]);
    const before = await target!.rowTexts("auto");
    const { packet } = await world.forge("forged-record-id", base!);
    await target!.ingest([packet]);
    expect(await target!.rowTexts("auto")).toEqual(before);
    await base!.ingest([packet]);
    expect(await base!.rowTexts("auto")).toEqual(before);
  });
});

describe("delivery", () => {
  rule(
    "[convergence] a change that names a record twice is folded whole, on whichever side of a checkpoint",
    async () => {
      using dir = scratchDir("svc-world");
      await using world = await open(dir.path);
      const [writer, other] = await createReplicas(world, 2);
      const inc = { id: "r", upsert: true, ops: [{ type: "$inc" as const, path: "n", value: 1 }] };
      await writer!.write([inc]);
      await meet([writer!, other!]);
      // Checkpoints come with so many ops: each of these changes may be the one, with its first or its second record.
      for (let i = 0; i < 300; i++) await writer!.write([inc, inc]);
      const packets = await lacking(writer!, other!);
      expect(packets).toHaveLength(300);
      await other!.ingest(packets.slice(0, 290));
      await other!.write([inc]); // sorts before what the writer did last, and after the checkpoints
      await heal(createRng(1), [writer!, other!]);
      for (const replica of [writer!, other!]) {
        expectFold(await replica.rowTexts(), referenceFold(await replica.decoded()));
        expect(JSON.parse((await replica.rowTexts())[0]!)).toMatchObject({ n: 602 });
      }
    },
  );

  rule(
    "[convergence] children long before their parents, one packet at a time, in reverse",
    async () => {
      using dir = scratchDir("svc-world");
      await using world = await open(dir.path);
      const [writer, reader] = await createReplicas(world, 2);
      const rng = createRng(firstSeed).fork("reverse");
      for (let i = 0; i < 40; i++) await writer!.write(randomRecords(rng, 3));
      for (const packet of (await writer!.packets()).toReversed()) await reader!.ingest([packet]);
      expect(await reader!.parked()).toEqual([]);
      expect(await reader!.rowTexts()).toEqual(await writer!.rowTexts());
    },
    60_000,
  );

  rule("[convergence] a record named before it was created, without knowing so, is the same everywhere", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [creator, early, witness] = await createReplicas(world, 3);
    await seedRows([creator!, early!, witness!]);
    await creator!.write([{ id: "", upsert: true, ops: [{ type: "$set", path: "s", value: "made" }] }], "auto");
    const { id } = JSON.parse((await creator!.rowTexts("auto"))[0]!) as { id: string };
    // Its clock is ahead, so that this sorts behind the creation that it does not know.
    for (let i = 0; i < 5; i++)
      await early!.write([{ id: "x", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]);
    await early!.write([{ id, upsert: true, ops: [{ type: "$set", path: "f", value: "named" }] }], "auto");
    expect(await early!.rowTexts("auto")).toEqual([]);
    await heal(createRng(1), [creator!, early!, witness!]);
    const rows = await creator!.rowTexts("auto");
    expect(JSON.parse(rows[0]!)).toMatchObject({ s: "made", f: "named" });
    expect(await early!.rowTexts("auto")).toEqual(rows);
    expect(await witness!.rowTexts("auto")).toEqual(rows);
    await early!.rebuild();
    expect(await early!.rowTexts("auto")).toEqual(rows);
  });

  rule("[convergence] what is parked survives a restart and heals afterwards", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [writer, reader] = await createReplicas(world, 2);
    await meet([writer!, reader!]);
    for (let i = 0; i < 10; i++) {
      await writer!.write([{ id: "r", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]);
    }
    const packets = await lacking(writer!, reader!);
    const [first, ...rest] = packets;
    const verdicts = await reader!.ingest(rest);
    expect(verdicts.every((verdict) => verdict.outcome === "parked")).toBe(true);
    await reader!.reopen();
    expect(await reader!.parked()).toHaveLength(rest.length);
    await reader!.ingest([first!]);
    expect(await reader!.parked()).toEqual([]);
    expect(await reader!.rowTexts()).toEqual(await writer!.rowTexts());
  });

  rule("[convergence] a duplicate is said to be one and changes nothing", async () => {
    using dir = scratchDir("svc-world");
    await using world = await open(dir.path);
    const [writer, reader] = await createReplicas(world, 2);
    await seedRows([writer!, reader!]);
    const rows = await reader!.rowTexts();
    const verdicts = await reader!.ingest(await writer!.packets());
    expect(new Set(verdicts.map((verdict) => verdict.outcome))).toEqual(new Set(["duplicate"]));
    expect(await reader!.rowTexts()).toEqual(rows);
  });
});

const membership = await (async () => {
  using dir = scratchDir("svc-world");
  await using world = await open(dir.path);
  return world.createMember !== undefined && world.removeMember !== undefined;
})();
const memberTest = skipUnless(membership, "the engine's port offers no members yet");

describe("late verdicts", () => {
  for (let i = 0; i < 8; i++) {
    memberTest(
      `[convergence] membership history ${i}: what a removal cuts off counts nowhere, whenever it is learnt`,
      async () => {
        const rng = createRng(firstSeed).fork(`membership ${i}`);
        using dir = scratchDir("svc-world");
        await using world = await open(dir.path, rng.pick([1, 3, 256]));
        const owners = await createReplicas(world, 2);
        await meet(owners);
        const member = await world.createMember!("member");
        const everybody = [...owners, member];
        await heal(rng, everybody);
        const plan = { steps: 25, records: 3 };
        const removalAt = rng.int(5, 20);
        for (let step = 0; step < plan.steps; step++) {
          if (step === removalAt) await world.removeMember!(member, owners[0]!);
          else
            await takeStep(rng, everybody, plan).catch((error: unknown) =>
              expectRefusedWriter(error, step > removalAt),
            );
        }
        await heal(rng, everybody);
        const rows = await owners[0]!.rowTexts();
        expect(await owners[1]!.rowTexts()).toEqual(rows);
        expectFold(rows, referenceFold(await owners[0]!.decoded()));
        const late = await world.createReplica("late");
        for (const batch of batches(rng, rng.shuffle(await owners[0]!.packets()))) await late.ingest(batch);
        expect(await late.rowTexts()).toEqual(rows);
      },
      60_000,
    );
  }
});

/** After its removal the member's own device may refuse to write; nothing else may go wrong. */
function expectRefusedWriter(error: unknown, mayHappen: boolean): void {
  const code = (error as { code?: unknown }).code;
  if (!mayHappen || code !== "space.read_only") throw error;
}

async function open(dir: string, checkpointEveryOps?: number): Promise<World> {
  let now = Date.UTC(2026, 0, 31);
  return openWorld({ dir, now: () => (now += 7), ...(checkpointEveryOps ? { checkpointEveryOps } : {}) });
}

async function createReplicas(world: World, count: number): Promise<Replica[]> {
  const replicas: Replica[] = [];
  for (let i = 0; i < count; i++) replicas.push(await world.createReplica(`replica-${i}`));
  return replicas;
}

/** Gives every replica what the others hold, so that all know the space, the object and its dataset. */
async function meet(replicas: readonly Replica[]): Promise<void> {
  await heal(createRng(1), replicas);
}

/** A few rows that all of the given replicas hold. */
async function seedRows(replicas: readonly Replica[]): Promise<void> {
  await meet(replicas);
  for (const [index, replica] of replicas.entries()) {
    await replica.write([{ id: `r${index}`, upsert: true, ops: [{ type: "$set", path: "n", value: index }] }]);
    await replica.write([{ id: "shared", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]);
  }
  await meet(replicas);
}

/** What `from` holds and `to` does not, parents first. */
async function lacking(from: Replica, to: Replica): Promise<Packet[]> {
  const held = new Set((await to.packets()).map((packet) => packet.id));
  return (await from.packets()).filter((packet) => !held.has(packet.id));
}
