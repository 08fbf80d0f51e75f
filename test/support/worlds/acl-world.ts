/** One ACL log and the people around it: records signed by anybody, honest or forged, judged by the reducer alone. */

import { expect } from "bun:test";
import { addAccounts } from "../../../src/acl/compose/actions.ts";
import {
  type AclContext,
  type AclMade,
  type ComposeOptions,
  composeProposal,
  composeRecord,
} from "../../../src/acl/compose/compose.ts";
import { createKeyRing, type SpaceKeyRing } from "../../../src/acl/key-ring.ts";
import type { AclOp } from "../../../src/acl/record/op.ts";
import type { GrantablePermission } from "../../../src/acl/record/permission.ts";
import { type AclRecord, decodeAclRecord, encodeAclRecord } from "../../../src/acl/record/record.ts";
import { decodeSpaceHeader, type SpaceHeader } from "../../../src/acl/record/space-header.ts";
import { applyAclRecord } from "../../../src/acl/reducer/reducer.ts";
import { type AclState, emptyAcl } from "../../../src/acl/reducer/state.ts";
import type { PeerId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { canSealTo } from "../../../src/crypto/box.ts";
import { admitPublicKey } from "../../../src/crypto/public-key.ts";
import { createSigner, type Signer } from "../../../src/crypto/sign.ts";
import type { RefusalCode } from "../../../src/protocol/refusals.ts";
import type { SpaceGenesis } from "../../../src/space/genesis.ts";
import { createdSpaceGenesis } from "../../../src/space/space.ts";

export function createAccount(seed: Uint8Array = randomBytes(32)): Account {
  const signer = createSigner(seed);
  return { id: accountIdOf(signer.publicKey), peerId: "peer" as PeerId, seed, signer };
}

/** 32 bytes that pass for a public key and are no point of the curve: nobody has its secret, and nothing can be sealed to it. */
export function keyOffTheCurve(): Uint8Array {
  for (;;) {
    const key = randomBytes(32);
    if (admitPublicKey(key) && !canSealTo(key)) return key;
  }
}

export interface AclWorld {
  readonly genesis: SpaceGenesis;
  readonly header: SpaceHeader;
  readonly owner: Account;
  readonly state: AclState;
  readonly records: AclRecord[];
  /** The keys that somebody opens from the log as it is now. */
  keysOf(account: Account): SpaceKeyRing;
  /** What somebody's device would build upon. */
  contextOf(account: Account, clock?: number): AclContext;
  /** Builds, signs and applies what somebody does; throws what building throws, or what the reducer says. */
  act(account: Account, build: (context: AclContext) => readonly AclOp[], options?: ComposeOptions): AclMade;
  /** The reducer's answer to ops that `signer` signs as the next record, whatever they are; applied when valid. */
  forge(
    signer: Signer,
    ops: readonly AclOp[],
    over?: Partial<Pick<AclRecord, "prev" | "clock" | "space">>,
  ): RefusalCode | undefined;
  /** These ops with the keys that they call for, as the owner (or `by`) would complete them. */
  completed(ops: readonly AclOp[], by?: Account, options?: ComposeOptions): AclOp[];
  /** The reducer's answer to a record; applied when valid. */
  apply(bytes: Uint8Array): RefusalCode | undefined;
  propose(account: Account, ops: readonly AclOp[]): AclMade;
}

export function createAclWorld(given?: { owner: Account; genesis: SpaceGenesis }): AclWorld {
  const owner = given?.owner ?? createAccount();
  let now = 1_800_000_000_000;
  const genesis = given?.genesis ?? createdSpaceGenesis(owner, { nowMs: () => now });
  const { header } = decodeSpaceHeader(genesis.header)!;
  const state = emptyAcl();
  const records: AclRecord[] = [];

  const apply = (bytes: Uint8Array): RefusalCode | undefined => {
    const record = decodeAclRecord(bytes);
    if (!record) return "acl.record_malformed";
    const applied = applyAclRecord(state, record, header);
    if ("fault" in applied) return applied.fault.code;
    records.push(record);
    return undefined;
  };
  const rooted = apply(genesis.aclRoot.bytes);
  if (rooted) throw new Error(rooted);

  const keysOf = (account: Account) =>
    createKeyRing(genesis.spaceId, header, { state }, { keptKeys: { all: () => [], put: () => undefined } }, account);
  const contextOf = (account: Account, clock = 0): AclContext => ({
    spaceId: genesis.spaceId,
    header,
    state,
    account,
    keys: keysOf(account),
    cutOffs: () => [],
    clock,
    timeMs: ++now,
  });
  return {
    genesis,
    header,
    owner,
    state,
    records,
    keysOf,
    contextOf,
    apply,
    act(account, build, options = {}) {
      const context = contextOf(account);
      const made = composeRecord(context, build(context), options);
      const refused = apply(made.bytes);
      if (refused) throw new Error(refused);
      return made;
    },
    forge(signer, ops, over = {}) {
      const record = { space: state.space!, prev: state.head!, time: ++now, clock: state.clocks.at(-1)!, ...over };
      return apply(encodeAclRecord({ ...record, ops: [...ops] }, signer).bytes);
    },
    completed: (ops, by = owner, options = {}) =>
      decodeAclRecord(composeRecord(contextOf(by), ops, options).bytes)!.ops,
    propose: (account, ops) => composeProposal(contextOf(account), ops),
  };
}

/** Everything a state holds, as one text: equal states have equal texts. */
export function stateText(state: AclState): string {
  return JSON.stringify(state, (_key, value: unknown) => {
    if (value instanceof Map) return [...value];
    if (value && typeof value === "object" && "type" in value && value.type === "Buffer" && "data" in value)
      return Buffer.from(value.data as number[]).toString("hex");
    return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
  });
}

/** These ops are refused with this code, and nothing of them stays. */
export function expectRefused(world: AclWorld, code: RefusalCode, ops: readonly AclOp[], by = world.owner): void {
  const before = stateText(world.state);
  expect(world.forge(by.signer, ops)).toBe(code);
  expect(stateText(world.state)).toBe(before);
}

/** The bytes of the records, in the order of the log. */
export const aclLogOf = (world: AclWorld): Uint8Array[] => world.records.map(({ bytes }) => bytes);

export const addMember = (world: AclWorld, account: Account, permission: GrantablePermission = "writer"): AclMade =>
  world.act(world.owner, (context) => addAccounts(context, [{ identity: account.id, permission }]));

/** Makes the log so many records longer: the owner publishes a profile that many times. */
export function fillLog(world: AclWorld, times: number): void {
  const { keyId } = world.state.epochs[0]!.epoch;
  for (let i = 0; i < times; i++) {
    const metadata = { keyId, box: new Uint8Array(40).fill(i) };
    expect(world.forge(world.owner.signer, [{ op: "profile", metadata }])).toBeUndefined();
  }
}
