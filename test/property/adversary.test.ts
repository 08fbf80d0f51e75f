/**
 * Somebody who knows every format and has a member's keys, then a removed member's, then none at all: whatever it makes of
 * changes and of ACL records, a replica neither throws nor stalls nor grows beyond docs/security.md, two of them end
 * alike in whatever order it came, and what honest members write goes on. `ROUNDS` and `SEED` for more of it.
 */
import { describe, expect } from "bun:test";
import { encodeAclRecord } from "../../src/acl/record/record.ts";
import type { ChangeHeader } from "../../src/change/codec/change-codec.ts";
import { stubOf } from "../../src/change/codec/change-stub.ts";
import { DELETIONS_DATASET } from "../../src/change/fold/deletion-log.ts";
import type { IngestVerdict } from "../../src/change/intake/ingest-verdict.ts";
import type { Account } from "../../src/crypto/account.ts";
import { countDatabaseWork } from "../support/database-work.ts";
import { boundsOf } from "../support/hostile/attack-bounds.ts";
import {
  bodyBytes,
  createForger,
  type Forger,
  packedBytes,
  paidBytes,
  setOf,
} from "../support/hostile/forged-change.ts";
import { objectOf } from "../support/hostile/forger-world.ts";
import { anyCbor, bytesFrom, mutateBytes, mutateCbor } from "../support/hostile/mutate.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { add, type Device, exchange, remove, withDevices } from "../support/worlds/acl-devices.ts";
import { createAccount } from "../support/worlds/acl-world.ts";

const HISTORIES = rounds(2);
const STEPS = 150;
const firstSeed = runSeed("adversary");
const MIB = 1 << 20;
/** Statements and rows that one change may cost two replicas, whatever came before it. */
const WORK_A_CHANGE = 100;
/** What each record of a change adds to the turn that notes them: as docs/security.md says. */
const WORK_A_RECORD = 12;
/** What a record of a late change costs two replicas, with what came after it in the record. */
const WORK_A_LATE_RECORD = 100;

const bytesOnDisk = ({ space }: Device): number => {
  const { db } = space.store;
  const pages = db.query<{ page_count: number }, []>("PRAGMA page_count").get()!.page_count;
  return pages * db.query<{ page_size: number }, []>("PRAGMA page_size").get()!.page_size;
};

/** The JSON of a body that may be anything, with a record or two that make sense. */
function anyBody(rng: Rng): Uint8Array {
  const ids = ["a", "b", "c", "__proto__", "\ud800", "", "x".repeat(300)];
  const value = rng.pick<() => string>([
    () => JSON.stringify(anyCbor(rng)),
    () => "[".repeat(rng.pick([3, 128, 129, 2_000])) + "]".repeat(3),
    () => rng.pick(["-0", "1e999", "1e-400", '"\\ud800"', "null", '{"__proto__":{"x":1}}']),
    () => JSON.stringify("x".repeat(rng.int(0, 300_000))),
  ])();
  const entry = setOf(rng.pick(ids), rng.pick(["v", "a.b.c", "_ver", "id", "", "*", "x".repeat(600)]), value);
  const dataset = rng.pick(["items", "items", "items", "objects", DELETIONS_DATASET, "nobody's"]);
  const records = rng.chance(0.2) ? `${entry},{"id":"a","delete":true,"ops":[]}` : entry;
  const plain = bodyBytes(`{"dataset":"${dataset}","records":[${records}]}`);
  if (rng.chance(0.15)) return mutateBytes(rng, plain);
  if (rng.chance(0.1)) return bodyBytes(JSON.stringify(mutateCbor(rng, { dataset, records: [] })));
  return plain;
}

function anyHeader(rng: Rng): Partial<ChangeHeader> {
  if (rng.chance(0.6)) return {};
  return rng.pick<() => Partial<ChangeHeader>>([
    () => ({ lamport: rng.pick([1, 2 ** 40, 2 ** 52]) }),
    () => ({ time: rng.pick([0, 8.64e15 + 1, 253_402_300_799_999]) }),
    () => ({ parents: [bytesFrom(rng, 32)] }),
    () => ({ keyId: bytesFrom(rng, 16) }),
    () => ({ acl: bytesFrom(rng, 32) }),
    () => ({ prev: bytesFrom(rng, 32), seq: 2 }),
    () => ({ seq: 9, prev: bytesFrom(rng, 32) }),
    () => ({ space: bytesFrom(rng, 32) }),
    () => ({ kind: "root" as const, object: null, parents: [], prev: null, seq: 1 }),
  ])();
}

/** The next record of the log, as this account might forge one. */
function anyRecord(rng: Rng, { space }: Device, { signer }: Account): Uint8Array {
  const { state } = space.acl;
  const model = rng.pick(space.acl.records()).record;
  const ops = rng.chance(0.5)
    ? model.ops
    : [{ op: "profile", metadata: { keyId: bytesFrom(rng, 16), box: bytesFrom(rng, 40) } } as const];
  const clock = rng.pick([state.clocks.at(-1)!, 0, 2 ** 52]);
  const made = encodeAclRecord({ space: state.space!, prev: state.head!, time: 1, clock, ops: [...ops] }, signer).bytes;
  return rng.chance(0.3) ? mutateBytes(rng, made) : made;
}

/** Few bytes that say much: records by the hundred, texts that compress, traces; paid for or not. */
function dearBody(rng: Rng): { plain: Uint8Array; records: number } {
  const count = rng.pick([10, 50, 500]);
  const text = "x".repeat(rng.pick([0, 100, Math.floor(MIB / count)].filter((length) => length * count <= MIB)));
  const records = Array.from({ length: count }, (_, i) =>
    setOf(`many${i}`, rng.pick(["v", "w", "v.deep"]), JSON.stringify(text)),
  );
  const traces = count > 50 ? [] : Array.from({ length: rng.pick([0, 4]) }, (_, i) => `${i}`.repeat(100));
  const json = `{"dataset":"items","records":[${records.join()}],"traceIds":${JSON.stringify(traces)}}`;
  const plain = rng.chance(0.3) ? packedBytes(json) : paidBytes(json, json.length + 1_000 * records.length);
  return { plain, records: count };
}

interface Attack {
  rng: Rng;
  replicas: readonly Device[];
  adversary: Account;
  /** Writers of the adversary's, which go on or fork. */
  forgers: Forger[];
  /** Records of late changes: the most of one, and of all. */
  late: { most: number; all: number };
}

/** One thing that the adversary sends to both, in orders of their own. Answers the first replica's verdicts. */
async function strike({ rng, replicas, adversary, forgers, late }: Attack): Promise<IngestVerdict[]> {
  const [one] = replicas as [Device];
  if (rng.chance(0.1)) {
    const record = anyRecord(rng, one, adversary);
    for (const device of replicas) await device.space.aclService.take([record]);
    return [];
  }
  if (forgers.length === 0 || rng.chance(0.15)) forgers.push(createForger(one.space, objectOf(one), adversary.signer));
  const forger = rng.pick(forgers);
  if (rng.chance(0.1)) {
    // Late: it stands on the object alone, before all that was written to it.
    const { id } = objectOf(one);
    const { plain, records } = dearBody(rng);
    const header = { parents: [id], lamport: 1 + one.space.acl.head().clock };
    const { bytes } = createForger(one.space, objectOf(one), adversary.signer).write(plain, header);
    for (const device of replicas) await device.space.engine.ingest([bytes]);
    late.most = Math.max(late.most, records);
    late.all += records;
  }
  const changes = Array.from({ length: rng.int(1, 6) }, () => forger.write(anyBody(rng), anyHeader(rng)).bytes);
  const spoilt = changes.map((bytes) => (rng.chance(0.1) ? mutateBytes(rng, bytes) : bytes));
  const sent = rng.chance(0.3) ? [...spoilt.map(stubOf), ...spoilt] : spoilt;
  const verdicts: IngestVerdict[][] = [];
  for (const [index, device] of replicas.entries())
    verdicts.push(await device.space.engine.ingest(index === 0 ? sent : rng.shuffle(sent)));
  return verdicts[0]!;
}

async function runHistory(seed: number): Promise<void> {
  const rng = createRng(seed);
  using work = countDatabaseWork();
  await withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    const adversary = createAccount();
    await one.write("honest", "0");
    await add(one, adversary);
    await exchange([one, two]);
    let edits = 0;
    for (const by of ["a member with the right to write", "a removed member or a guest", "a stranger"] as const) {
      if (by === "a removed member or a guest") await remove(one, adversary);
      await exchange([one, two]);
      const account = by === "a stranger" ? createAccount() : adversary;
      const attack: Attack = { rng, replicas: [one, two], adversary: account, forgers: [], late: { most: 0, all: 0 } };
      const before = { disk: bytesOnDisk(one), memory: process.memoryUsage().rss, cpu: process.cpuUsage() };
      let judged = 0;
      work.restart();
      for (let step = 0; step < STEPS; step++) {
        judged += (await strike(attack)).length;
        if (step % 30 === 0) await rng.pick([one, two]).write("honest", `${++edits}`);
      }
      const { user, system } = process.cpuUsage(before.cpu);
      const asked = work.read();
      const bounds = boundsOf(by);
      expect(judged).toBeGreaterThan(STEPS / 2);
      expect((bytesOnDisk(one) - before.disk) / MIB).toBeLessThan(bounds.diskMiB);
      expect((process.memoryUsage().rss - before.memory) / MIB).toBeLessThan(bounds.memoryMiB);
      expect((user + system) / 1e6).toBeLessThan(bounds.processorS);
      expect(asked.most).toBeLessThan(bounds.turnWork + WORK_A_RECORD * attack.late.most);
      expect(asked.all).toBeLessThan(WORK_A_CHANGE * judged + WORK_A_LATE_RECORD * attack.late.all);
      await one.write("honest", `${++edits}`);
      await exchange([one, two]);
      expect((await two.values())["honest"]).toBe(`${edits}`);
      const rows = await one.rows();
      expect(await two.rows()).toEqual(rows);
      await two.reopen();
      await two.space.engine.rebuildProjection();
      expect(await two.rows()).toEqual(rows);
    }
  });
}

describe("an adversary with keys", () => {
  for (let i = 0; i < HISTORIES; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[CHANGE-3] history ${i}: nothing throws, grows, stalls or differs, whatever rights it has`,
      () => runHistory(seed),
      120_000,
    );
  }
});
