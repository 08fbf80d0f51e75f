/**
 * Changes of others on their way into the log: verified on another thread or not, and tried again when what they waited
 * for has come, in slices between which everything else goes on.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import type { KeyRing } from "../../src/change/codec/ports.ts";
import { type ChangeChecker, createChangeChecker } from "../../src/change/intake/change-checker.ts";
import type { IngestVerdict } from "../../src/change/intake/ingest-verdict.ts";
import { sha256 } from "../../src/crypto/hash.ts";
import { keyIdOf } from "../../src/crypto/seal.ts";
import { loopTurns } from "../support/loop-turns.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { createIntakeWorld, type IntakeWorld, ITEMS, stateOf, TRAP, write } from "../support/worlds/intake-world.ts";
import { changesOf, type OpenEngine } from "../support/worlds/open-engine.ts";

const HISTORIES = rounds(2);
const MANY = 3_000;
/** Each has few changes: nothing that is paid once a batch makes batches longer. */
const RECORDS = 1_000;
const firstSeed = runSeed("intake");

const checker = createChangeChecker((error) => {
  throw error;
});
afterAll(() => checker.close());

/** Two devices that write apart and meet now and then. */
async function randomHistory(world: IntakeWorld, rng: Rng): Promise<Uint8Array[]> {
  const devices = [world.open("one"), world.open("two", {}, createAccount())];
  for (let step = 0; step < 150; step++) {
    const device = rng.pick(devices);
    const type = rng.pick(["$set", "$inc", "$addToSet"] as const);
    await write(device, `r${rng.int(0, 4)}`, { type, path: `${type.slice(1)}`, value: rng.int(0, 9) });
    if (rng.chance(0.05)) {
      const [from, to] = rng.shuffle(devices);
      await to!.ingest(await changesOf(from!));
    }
  }
  await devices[0]!.ingest(await changesOf(devices[1]!));
  const all = await changesOf(devices[0]!);
  for (const device of devices) await device.close();
  return all;
}

/** Which were refused and why. Whether a parent's arrival was gone through before its child came is a matter of time. */
const refusals = (verdicts: readonly IngestVerdict[]) =>
  verdicts.flatMap((verdict, at) => (verdict.kind === "quarantined" ? [`${at}: ${verdict.refusal.code}`] : []));

/** Flips one byte near the end, where the signature lies. */
const withBadSignature = (bytes: Uint8Array): Uint8Array => bytes.with(bytes.length - 3, bytes.at(-3)! ^ 1);

/** A chain in which each change follows the one before, by one writer. */
async function chain(world: IntakeWorld, length: number): Promise<Uint8Array[]> {
  const writer = world.open("writer");
  const rng = createRng(firstSeed);
  await Promise.all(
    Array.from({ length }, (_, n) =>
      write(writer, `r${n % RECORDS}`, { type: "$inc", path: "n", value: rng.int(0, 9) }),
    ),
  );
  const all = await changesOf(writer);
  await writer.close();
  return all;
}

describe("verified on another thread", () => {
  for (let seed = firstSeed; seed < firstSeed + HISTORIES; seed++) {
    rule(
      `[CHANGE-4] history ${seed - firstSeed}: what comes of a batch does not depend on who verified it`,
      async () => {
        using world = createIntakeWorld();
        const rng = createRng(seed);
        const honest = await randomHistory(world, rng);
        const forged = honest
          .slice(2)
          .filter(() => rng.chance(0.1))
          .map(withBadSignature);
        const junk = [Buffer.concat([honest[5]!, Uint8Array.of(0)]), new Uint8Array(90).fill(7)];
        const batch = rng.shuffle([...honest, ...forged, ...junk, honest[3]!]);

        const alone = world.open("alone");
        const verdicts: IngestVerdict[] = [];
        for (const bytes of batch) verdicts.push(...(await alone.ingest([bytes])));
        expect(refusals(verdicts).length).toBeGreaterThan(forged.length);
        const here = world.open("here");
        expect(refusals(await here.ingest(batch))).toEqual(refusals(verdicts));
        const there = world.open("there", { checker });
        expect(refusals(await there.ingest(batch))).toEqual(refusals(verdicts));

        const expected = stateOf(alone);
        expect(expected.parked).toEqual([]);
        expect(stateOf(here)).toEqual(expected);
        expect(stateOf(there)).toEqual(expected);
        for (const engine of [alone, here, there]) await engine.close();
      },
    );
  }

  rule("[CHANGE-4] an answer for other bytes is worth nothing", async () => {
    using world = createIntakeWorld();
    const all = await chain(world, 120);
    const forged = withBadSignature(all[20]!);
    const batch = [...all.slice(0, 20), forged, ...all.slice(20)];
    const answers: ((many: readonly Uint8Array[]) => (Uint8Array | undefined)[])[] = [
      (many) => many.map((_, n) => sha256(many[(n + 1) % many.length]!)),
      (many) => many.map(() => sha256(all[20]!)),
      (many) => many.map(() => new Uint8Array(32)),
      () => [],
    ];
    for (const [n, answer] of answers.entries()) {
      const liar: ChangeChecker = { check: async (many) => answer(many), close() {} };
      const engine = world.open(`liar ${n}`, { checker: liar });
      const verdicts = await engine.ingest(batch);
      expect(verdicts[20]).toMatchObject({ kind: "quarantined", refusal: { code: "change.signature" } });
      expect(verdicts.filter(({ kind }) => kind === "stored")).toHaveLength(all.length);
      await engine.close();
    }
  });

  rule("few changes are verified where they are written", async () => {
    using world = createIntakeWorld();
    const all = await chain(world, 250);
    const asked: number[] = [];
    const counting: ChangeChecker = {
      check(many) {
        asked.push(many.length);
        return checker.check(many);
      },
      close() {},
    };
    const engine = world.open("counting", { checker: counting });
    for (const bytes of all.slice(0, 10)) await engine.ingest([bytes]);
    await engine.ingest(all.slice(10, 60));
    expect(asked).toEqual([]);
    await engine.ingest(all.slice(60));
    expect(asked.reduce((sum, count) => sum + count, 0)).toBe(all.length - 60);
    await engine.close();
  });

  rule("[CHANGE-4] threads that die or hang hold no batch up, and are told of once", async () => {
    const entries = { dies: "self.onmessage = () => process.exit(0);", hangs: "self.onmessage = () => { for (;;); };" };
    for (const [name, entry] of Object.entries(entries)) {
      using world = createIntakeWorld();
      const all = await chain(world, 400);
      const lost: unknown[] = [];
      const broken = createChangeChecker((error) => lost.push(error), {
        spawn: () => new Worker(URL.createObjectURL(new Blob([entry], { type: "application/javascript" }))),
        deadlineMs: 500,
      });
      const engine = world.open(name, { checker: broken });
      const verdicts = await engine.ingest(all);
      expect(verdicts.every(({ kind }) => kind === "stored")).toBe(true);
      expect(lost).toHaveLength(1);
      broken.close();
      await engine.close();
    }
  });

  rule("[CHANGE-4] a change that cannot be taken fails alone", async () => {
    using world = createIntakeWorld();
    const all = await chain(world, 120);
    const writer = world.open("trapper", {}, createAccount());
    await writer.write((tx) =>
      tx.append(tx.ensureDerived("trap", ""), { dataset: "trap", records: [{ id: "t", upsert: true, ops: [] }] }, TRAP),
    );
    const trap = await changesOf(writer);
    await writer.close();
    const engine = world.open("trapped", {
      checker,
      registry: {
        rulesFor(dataset) {
          if (dataset === "trap") throw new Error("the trap");
          return { rules: ITEMS };
        },
      },
    });
    const fault = await engine
      .ingest([...all.slice(0, 20), ...trap, ...all.slice(20)])
      .catch((error: unknown) => error);
    expect(fault).toMatchObject({ message: "the trap" });
    await engine.idle();
    expect(await changesOf(engine)).toHaveLength(all.length + trap.length - 1);
    await engine.close();
  });
});

/** Changes that all wait: for one parent, each for the next, or for a key. */
type Waiting = "parent" | "chain" | "key";

interface Scene {
  readonly engine: OpenEngine;
  readonly count: number;
  /** Lets what they wait for come. */
  arrive(): Promise<unknown>;
}

const path = (world: IntakeWorld, name: string) => join(world.dir.path, `${name}.db`);

async function setScene(
  world: IntakeWorld,
  kind: Waiting,
  name: string,
  history: readonly Uint8Array[],
): Promise<Scene> {
  const key = { id: keyIdOf(world.genesis.readKey), key: world.genesis.readKey };
  let hasKey = kind !== "key";
  const keys: KeyRing = { current: () => key, byId: () => (hasKey ? key.key : undefined) };
  const engine = world.open(name, { keys, checker });
  const [first, second, ...rest] = history;
  const held = kind === "key" ? [second!, ...rest] : rest;
  await engine.ingest([first!]);
  await engine.ingest(held);
  return {
    engine,
    count: held.length,
    arrive() {
      hasKey = true;
      return kind === "key"
        ? engine.changeAcl(() => ({ result: undefined, consequences: { named: [], revoked: [], keys: true } }))
        : engine.ingest([second!]);
    },
  };
}

/** Changes that all follow the same one: branches that one writer made, each as if it had made no other. */
async function fan(world: IntakeWorld, width: number): Promise<Uint8Array[]> {
  const base = world.open("base");
  await write(base, "r", { type: "$set", path: "n", value: 0 });
  const trunk = await changesOf(base);
  await base.close();
  const all = [...trunk];
  const other = world.open("fan", {}, createAccount());
  await other.ingest(trunk);
  await other.mintWriter();
  const newest = other.store.db.query<{ bytes: Uint8Array }, []>("SELECT bytes FROM changes ORDER BY no DESC LIMIT 1");
  // All at the same heads: each write is undone once its bytes are known.
  const branch = (n: number) =>
    other.write((tx) => {
      const ops = [{ type: "$inc" as const, path: "n", value: n }];
      const records = [{ id: `r${n % RECORDS}`, upsert: true, ops }];
      tx.append(tx.ensureDerived("intake", ""), { dataset: "items", records }, ITEMS);
      all.push(new Uint8Array(newest.get()!.bytes));
      return tx.rollBackWith(undefined);
    });
  await Promise.all(Array.from({ length: width }, (_, n) => branch(n)));
  await other.close();
  return all;
}

interface History {
  readonly of: Pick<IntakeWorld, "genesis" | "owner">;
  readonly changes: readonly Uint8Array[];
  /** What comes of them where none has to wait. */
  readonly state: ReturnType<typeof stateOf>;
}

async function makeHistory(make: (world: IntakeWorld, count: number) => Promise<Uint8Array[]>): Promise<History> {
  using world = createIntakeWorld();
  const changes = await make(world, MANY);
  const reference = world.open("reference");
  await reference.ingest(changes);
  const state = stateOf(reference);
  await reference.close();
  return { of: world, changes, state };
}

/** Changes that wait as a whole, and those of which the body does. */
const waitingIn = ({ store }: OpenEngine): number => store.parked.usage().count + store.pendingBodies.count();

describe("what waited", () => {
  let fanned: History;
  let chained: History;
  beforeAll(async () => {
    fanned = await makeHistory(fan);
    chained = await makeHistory(chain);
  }, 60_000);
  for (const kind of ["parent", "chain", "key"] as const) {
    rule(`[CHANGE-9] ${MANY} changes that waited (${kind}) are tried in slices: writes and reads go on`, async () => {
      const { of, changes, state } = kind === "parent" ? fanned : chained;
      using world = createIntakeWorld(of);
      const { engine, count, arrive } = await setScene(world, kind, "waiting", changes);
      expect(waitingIn(engine)).toBe(count);
      const arrived = arrive();
      let answered = 0;
      let reads = 0;
      const left: number[] = [];
      while (left.at(-1) !== 0) {
        await engine.write((tx) => tx.localVersion());
        answered++;
        await loopTurns();
        const object = engine.object(engine.derivedId("intake", ""))!;
        if (engine.record(object, "items", "r1") !== undefined) reads++;
        left.push(waitingIn(engine));
      }
      await arrived;
      await engine.idle();
      expect(answered).toBeGreaterThan(5);
      expect(reads).toBeGreaterThan(3);
      expect(new Set(left).size).toBeGreaterThan(5);
      expect(stateOf(engine)).toEqual(state);
      await engine.close();
    });

    rule(
      `[CHANGE-9] a crash between two slices (${kind}) loses nothing: the rest is tried at the next start`,
      async () => {
        const { of, changes, state } = kind === "parent" ? fanned : chained;
        using world = createIntakeWorld(of);
        const { engine, count, arrive } = await setScene(world, kind, "crashing", changes);
        let commits = 0;
        const taken = Promise.withResolvers<void>();
        engine.events.on("committed", () => {
          if (++commits !== 3) return;
          taken.resolve();
          for (const suffix of ["", "-wal"]) {
            const from = path(world, "crashing") + suffix;
            if (existsSync(from)) copyFileSync(from, path(world, "copied") + suffix);
          }
        });
        const arrived = arrive().catch((error: unknown) => error);
        await taken.promise;
        await engine.close();
        await arrived; // it ends with the engine, or before

        const copied = world.open("copied");
        const left = waitingIn(copied);
        expect(left).toBeGreaterThan(0);
        expect(left).toBeLessThan(count);
        await copied.idle();
        expect(stateOf(copied)).toEqual(state);
        await copied.close();

        // It comes to the same after it was closed in the middle.
        const again = world.open("crashing");
        await again.idle();
        expect(stateOf(again)).toEqual(state);
        await again.close();
      },
    );
  }

  rule("[CHANGE-5] a derived root that is made here lets in what waited for it from elsewhere", async () => {
    using world = createIntakeWorld();
    const [, ...withoutRoot] = await chain(world, 5);
    const engine = world.open("own", {}, createAccount());
    expect((await engine.ingest(withoutRoot)).every(({ kind }) => kind === "parked")).toBe(true);
    await write(engine, "mine", { type: "$set", path: "n", value: 1 });
    await engine.idle();
    expect(stateOf(engine)).toMatchObject({ parked: [], quarantined: [], unblocked: [] });
    const all = await changesOf(engine);
    expect(all).toHaveLength(7);
    const other = world.open("other");
    await other.ingest(all.toReversed());
    expect(stateOf(other)).toEqual(stateOf(engine));
    for (const one of [engine, other]) await one.close();
  });
});
