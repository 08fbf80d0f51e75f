/** Bundles of two replicas that installed apart: who waits, who wins, and when the loser may end. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { codeOf } from "../../../test/support/errors-of.ts";
import { holdTimers } from "../../../test/support/held-timers.ts";
import { createRng } from "../../../test/support/rng.ts";
import { type ScratchDir, scratchDir } from "../../../test/support/scratch.ts";
import { until } from "../../../test/support/server/client.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import {
  createOpenGenesis,
  deliver,
  type OpenEngine,
  type OpenGenesis,
  openEngine,
} from "../../../test/support/worlds/open-engine.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import { svcError } from "../../protocol/errors.ts";
import type { ObjectWriterPort } from "../object/port.ts";
import { BUNDLE_CHILDREN_RULES, BUNDLE_RULES } from "./bundle-rules.ts";
import { type BundleService, createBundleService } from "./bundle-service.ts";

const OBJECTS: DatasetRules = { name: "objects", idRule: "object" };
const MINUTE = 60_000;
const BUNDLE = "app/v1";
const { shuffle } = createRng(1);

interface Replica {
  readonly engine: OpenEngine;
  readonly bundles: BundleService;
  isOwner: boolean;
  isReader: boolean;
  converges: boolean;
  isSynced: boolean;
  /** How often it was asked whether a root is synced: once with each try to resolve it. */
  tries: number;
}

let directory: ScratchDir;
let space: OpenGenesis;
let nowMs: number;
let one: Replica;
let other: Replica;

beforeEach(() => {
  directory = scratchDir("svc-bundle-service");
  space = createOpenGenesis();
  nowMs = 1_760_000_000_000;
  [one, other] = [open("one"), open("other")];
});
afterEach(async () => {
  for (const { bundles, engine } of [one, other]) {
    bundles.close();
    await engine.close();
  }
  directory[Symbol.dispose]();
});

/** Gives objects a row and nothing else. */
const objects = {
  planShared: () => ({}),
  writeNew(tx: WriteTx) {
    const object = tx.createObject();
    objects.fillDerived(tx, object, {});
    return { id: object.idText };
  },
  fillDerived(tx: WriteTx, object: ObjectEntry): string {
    const ops = [{ type: "$set" as const, path: "svc.name", value: "root" }];
    tx.append(object, { dataset: "objects", records: [{ id: "", upsert: true, ops }] }, OBJECTS);
    return object.idText;
  },
} as unknown as ObjectWriterPort;

function open(name: string): Replica {
  const rules = [OBJECTS, BUNDLE_RULES, BUNDLE_CHILDREN_RULES];
  const engine = openEngine(directory.path, name, space, createAccount(), rules, () => nowMs);
  const state = { engine, isOwner: false, isReader: false, converges: false, isSynced: false, tries: 0 };
  const bundles = createBundleService({
    engine,
    objects,
    clock: { nowMs: () => nowMs },
    convergence: {
      waitConverged: async () => replica.converges,
      isSynced() {
        replica.tries++;
        return replica.isSynced;
      },
    },
    isOwner: () => replica.isOwner,
    requireWriter() {
      if (replica.isReader) throw svcError("space.read_only");
    },
    onBackgroundError(error) {
      throw error;
    },
  });
  const replica: Replica = Object.assign(state, { bundles });
  return replica;
}

async function meet(): Promise<void> {
  await deliver(one.engine, other.engine, shuffle);
  await deliver(other.engine, one.engine, shuffle);
  for (const { engine } of [one, other]) await engine.idle();
}
const ensure = ({ bundles }: Replica, derived = false) => bundles.ensure({ id: BUNDLE, derived });

test("[BUNDLE-1] who may not have heard of an install waits, but for the owner and who has heard of all", async () => {
  expect(await codeOf(ensure(one))).toBe("bundle.not_ready");
  expect(one.bundles.list()).toEqual([]);
  one.isOwner = true;
  expect(await ensure(one)).toMatchObject({ installed: true });
  other.converges = true;
  expect(await ensure(other)).toMatchObject({ installed: true });
});

test("[BUNDLE-1] who may only read adopts what is there, and installs nothing", async () => {
  other.isReader = true;
  expect(await codeOf(ensure(other))).toBe("space.read_only");
  one.isOwner = true;
  const { bundle } = await ensure(one);
  await meet();
  expect(await ensure(other)).toEqual({ bundle, installed: false });
});

test("[BUNDLE-2] derived roots that were made apart are one, and win over a root that was created", async () => {
  one.isOwner = true;
  const created = (await ensure(one)).bundle.rootId;
  const { bundle } = await ensure(other, true);
  await meet();
  for (const { bundles } of [one, other])
    expect(bundles.get(BUNDLE)).toMatchObject({ rootId: bundle.rootId, derived: true, losers: [created] });
  expect(bundle.rootId).not.toBe(created);
  expect((await ensure(one, true)).installed).toBe(false);
});

describe("of two installs that were made apart", () => {
  let winner: string;
  let loser: string;
  beforeEach(async () => {
    for (const each of [one, other]) {
      each.isOwner = true;
      await ensure(each);
    }
    await meet();
    const { rootId, losers } = one.bundles.get(BUNDLE);
    [winner, loser] = [rootId, losers![0]!];
  });

  test("[BUNDLE-1] one wins, the same everywhere, and the other is still there", () => {
    expect(other.bundles.get(BUNDLE)).toEqual(one.bundles.get(BUNDLE));
    for (const { engine } of [one, other])
      for (const root of [winner, loser]) expect(engine.object(root)).toMatchObject({ deleted: false });
  });

  test("[BUNDLE-1] the loser ends once it is synced and was seen for five minutes, not before", async () => {
    const resolve = () => codeOf(one.bundles.resolve(BUNDLE, loser));
    one.isSynced = true;
    nowMs += 5 * MINUTE - 1;
    expect(await resolve()).toBe("bundle.loser_not_ready");
    nowMs += 1;
    one.isSynced = false;
    expect(await resolve()).toBe("bundle.loser_not_ready");
    expect(one.engine.object(loser)).toMatchObject({ deleted: false });
    one.isSynced = true;
    expect(await codeOf(one.bundles.resolve(BUNDLE, winner))).toBe("bundle.not_loser");
    expect(await resolve()).toBe("none");
    expect(one.engine.object(loser)).toMatchObject({ deleted: true });
    expect(one.engine.object(winner)).toMatchObject({ deleted: false });
    expect(one.bundles.get(BUNDLE)).not.toHaveProperty("losers");
    expect(await resolve()).toBe("none");
  });

  test("[BUNDLE-1] a loser that may not end yet is tried again every half minute, and ends behind the answer", async () => {
    {
      using timers = holdTimers();
      for (let times = 0; times < 2; times++)
        expect(await codeOf(one.bundles.resolve(BUNDLE, loser))).toBe("bundle.loser_not_ready");
      expect(one.tries).toBe(2);
      for (const tries of [3, 4]) {
        timers.pass(29_999);
        expect(one.tries).toBe(tries - 1);
        timers.pass(1);
        expect(one.tries).toBe(tries);
        // What follows from a try is done: it is waited for again.
        await codeOf(one.bundles.resolve(BUNDLE, winner));
      }
      nowMs += 5 * MINUTE;
      one.isSynced = true;
      timers.pass(30_000);
    }
    await until(() => one.engine.object(loser)?.deleted === true, "the loser's end");
    expect(one.engine.object(winner)).toMatchObject({ deleted: false });
  });
});
