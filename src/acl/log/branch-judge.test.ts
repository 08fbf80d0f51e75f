/** Records that leave the log, one by one, as anybody may put them behind it on the network. */
import { describe, expect, test } from "bun:test";
import { type AclWorld, createAccount, createAclWorld } from "../../../test/support/worlds/acl-world.ts";
import { randomBytes } from "../../base/random.ts";
import { createSigner, type Signer } from "../../crypto/sign.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { addAccounts } from "../compose/actions.ts";
import type { AclOp } from "../record/op.ts";
import { type AclRecord, decodeAclRecord, encodeAclRecord } from "../record/record.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import { StoredRecord } from "../record/stored-record.ts";
import { createBranchJudge } from "./branch-judge.ts";

const LOG = 200;
const invite = (): AclOp => ({ op: "invite", key: createSigner(randomBytes(32)).publicKey, mode: "request" });
/** The owner publishes a profile. */
const saying = ({ state }: AclWorld): AclOp => ({
  op: "profile",
  metadata: { keyId: state.epochs[0]!.epoch.keyId, box: randomBytes(40) },
});

function worldWithLog(): { world: AclWorld; writer: Signer } {
  const world = createAclWorld();
  const writer = createAccount();
  world.act(world.owner, (context) => addAccounts(context, [{ identity: writer.id, permission: "writer" }]));
  while (world.records.length < LOG) expect(world.forge(world.owner.signer, [saying(world)])).toBeUndefined();
  return { world, writer: writer.signer };
}

/** A judge of that log that counts how many records it applied. */
function judgeOf({ header, state, records }: AclWorld) {
  let applied = 0;
  const counted = {
    ...header,
    get kind() {
      applied++; // the reducer reads this once for each record after the first
      return header.kind;
    },
  } as SpaceHeader;
  const nothingKept = { meta: () => undefined } as unknown as SpaceStore;
  const log = { state, records: records.map((one) => new StoredRecord(one.id, one.bytes, one)), judged: 0 };
  return { judge: createBranchJudge(nothingKept, counted), log, applied: () => applied };
}

const recordOf = (world: AclWorld, signer: Signer, prev: AclRecord, ops: AclOp[]): AclRecord =>
  decodeAclRecord(
    encodeAclRecord({ space: world.state.space!, prev: prev.id, clock: prev.clock, time: 1, ops }, signer).bytes,
  )!;

describe("records that leave the log", () => {
  test("[ACL-9] are judged by going through the log once, however many there are, and each once", async () => {
    const { world, writer } = worldWithLog();
    const alone = world.records.slice(1, -1).map((prev) => recordOf(world, writer, prev, [invite()]));
    const following: AclRecord[] = [];
    for (let i = 0; i < 100; i++)
      following.push(recordOf(world, world.owner.signer, following.at(-1) ?? world.records[9]!, [saying(world)]));
    const { judge, log, applied } = judgeOf(world);
    await judge.judgeAhead(log, [...alone, ...following]);
    expect(applied()).toBeLessThan(2 * (LOG + alone.length + following.length));
    const judged = applied();
    for (const record of alone) {
      const { valid, fault } = judge.judge(log, [record]);
      expect([valid.length, fault?.code]).toEqual([0, "acl.managers_only"]);
    }
    for (let upto = 1; upto <= following.length; upto++)
      expect(judge.judge(log, following.slice(0, upto)).valid).toHaveLength(upto);
    expect(applied()).toBe(judged);
  });

  test("[ACL-12] what follows an invalid one is none, and what is valid leads to the state that the log would have", async () => {
    const { world, writer } = worldWithLog();
    const first = recordOf(world, world.owner.signer, world.records[4]!, [saying(world)]);
    const forged = recordOf(world, writer, first, [invite()]);
    const after = recordOf(world, world.owner.signer, forged, [saying(world)]);
    const { judge, log } = judgeOf(world);
    await judge.judgeAhead(log, [after, forged, first]);
    const { valid, fault } = judge.judge(log, [first, forged, after]);
    expect([valid, fault?.code]).toEqual([[first], "acl.managers_only"]);
    await judge.leadAhead(log, 4, valid);
    const state = judge.stateAfter(log, 4, valid);
    expect([state.clocks.length, state.head]).toEqual([6, first.id]);
    expect(judge.stateAfter(log, 4, valid)).toEqual(state);
  });
});
