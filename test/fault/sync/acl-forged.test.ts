/**
 * The rights matrix against a running server: forged records and proposals sent straight to its sync port, by peers with
 * the real keys of every role, and the same actions over HTTP.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { bytesToHex, equalBytes } from "../../../src/base/bytes.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import type { Account } from "../../../src/space/account.ts";
import { addAccounts, mintGuestKey, removeAccounts } from "../../../src/space/acl-actions.ts";
import type { AclOp } from "../../../src/space/acl-op.ts";
import { encodeAclProposal, encodeAclRecord } from "../../../src/space/acl-record.ts";
import { ACL_MATRIX, ACL_ROLES, type AclCast, type AclRole, createAclCast } from "../../support/acl-matrix.ts";
import { type AclWorld, createAccount } from "../../support/acl-world.ts";
import { type SpaceInfo, until } from "../../support/client.ts";
import { type Device, startDevice } from "../../support/devices.ts";
import { createObject, createSpace } from "../../support/fixtures.ts";
import {
  accountOfPhrase,
  type HostilePeer,
  inviteKeys,
  meetServer,
  memberKeys,
  type Offer,
  ownKeys,
  syncPortOf,
  warningsOf,
  worldOf,
} from "../../support/hostile-peer.ts";
import { rule } from "../../support/rule.ts";

/** `removed`: was a member once. */
type Actor = AclRole | "removed";
const ACTORS: readonly Actor[] = [...ACL_ROLES, "removed"];

interface Stage {
  readonly spaceId: SpaceId;
  readonly cast: AclCast;
  readonly removed: Account;
}

const chainOf = (world: AclWorld): Uint8Array[] => world.records.map(({ bytes }) => bytes);
const signerOf = (stage: Stage, actor: Actor) =>
  (actor === "removed" ? stage.removed : stage.cast.actors[actor]).signer;

/** A record as the next of the chain, whoever signs it, whatever it does. */
const forge = ({ cast: { world } }: Stage, signer: Account["signer"], ops: readonly AclOp[]): Uint8Array =>
  encodeAclRecord(
    { space: world.state.space!, prev: world.state.head!, time: 1, clock: world.state.clocks.at(-1)!, ops: [...ops] },
    signer,
  ).bytes;

describe("forged records at a server's sync port", () => {
  let device: Device;
  let owner: Account;
  let port: number;
  /** The account's other device: it may relay what anybody signed. */
  let relay: HostilePeer;
  const stages = new Map<boolean, Stage>();
  const peers = new Map<Actor, HostilePeer>();

  /** A space with everybody in it. Made by the owner's other device, and taken by the server from it. */
  const setStage = async (withGuest: boolean): Promise<Stage> => {
    const space = await createSpace(device.server.client, "stage");
    const world = await worldOf(relay, owner, space.id);
    const cast = createAclCast(world);
    const removed = createAccount();
    world.act(owner, (context) => addAccounts(context, [{ identity: removed.id, permission: "admin" }]));
    world.act(owner, (context) => removeAccounts(context, [removed.id]));
    if (withGuest) world.act(owner, (context) => mintGuestKey(context, cast.guestSeed));
    const reply = await relay.push(space.id, { chain: chainOf(world) });
    expect(bytesToHex(reply.aclHead)).toBe(bytesToHex(world.state.head!));
    return { spaceId: space.id as SpaceId, cast, removed };
  };
  /** A space that ends while it answers may not answer. */
  const untilDeleted = async (peer: HostilePeer, spaceId: string, offer: Offer): Promise<void> => {
    await peer.push(spaceId, offer).catch(() => undefined);
    await until(
      async () => (await device.server.client.get<SpaceInfo>(`/v1/spaces/${spaceId}`)).status === "deleted",
      "the end of the space",
    );
  };
  const rosterOf = (spaceId: string) => device.server.client.get<unknown>(`/v1/spaces/${spaceId}/members`);

  beforeAll(async () => {
    device = await startDevice({ lan: true });
    owner = await accountOfPhrase(device.mnemonic);
    port = await syncPortOf(device);
    relay = await meetServer(port, owner, ownKeys(owner));
    for (const withGuest of [false, true]) stages.set(withGuest, await setStage(withGuest));
    for (const actor of ACTORS) {
      const keys = [...stages.values()].map(({ spaceId, cast }) => {
        const transportSecret = cast.world.keysOf(owner).transportSecret()!;
        const account = actor === "removed" ? undefined : cast.actors[actor];
        return actor === "admin" || actor === "writer" || actor === "reader"
          ? memberKeys(account!, owner.signer.publicKey, spaceId)
          : inviteKeys(spaceId, transportSecret, [...cast.world.state.invites.values()][0]!.key);
      });
      if (actor === "owner") continue;
      const account = signerAccount(stages.get(true)!, actor);
      peers.set(
        actor,
        await meetServer(port, account, { own: keys[0]!.own, spaces: keys.flatMap((one) => one.spaces) }),
      );
    }
    peers.set("owner", relay);
  }, 60_000);
  afterAll(async () => {
    for (const peer of peers.values()) await peer[Symbol.asyncDispose]();
    await device?.[Symbol.asyncDispose]();
  }, 30_000);
  const signerAccount = (stage: Stage, actor: Actor): Account =>
    actor === "removed" ? stage.removed : stage.cast.actors[actor];

  for (const row of ACL_MATRIX) {
    rule(
      `[acl] only ${row.allowed.join(", ") || "nobody"} may ${row.title}: by a forged record and a proposal`,
      async () => {
        for (const actor of ACTORS) {
          const withGuest = row.guestKey === true || (actor === "guest" && row.title !== "make a guest key");
          const allowed = actor !== "removed" && row.allowed.includes(actor);
          const stage = allowed ? await setStage(withGuest) : stages.get(withGuest)!;
          const { spaceId, cast } = stage;
          const { world } = cast;
          const role = actor === "removed" ? "stranger" : actor;
          const ops = row.ops(
            actor === "removed" ? { ...cast, actors: { ...cast.actors, stranger: stage.removed } } : cast,
            role,
          );
          const head = world.state.head!;
          const before = await rosterOf(spaceId);
          const signer = signerOf(stage, actor);
          const peer = allowed ? relay : peers.get(actor)!;
          if (!allowed) {
            const unit = encodeAclProposal(
              { space: world.state.space!, basis: head, time: 1, ops: [...ops] },
              signer,
            ).bytes;
            const proposed = await peer.push(spaceId, { chain: chainOf(world), units: [unit] });
            expect([actor, "proposal", bytesToHex(proposed.aclHead)]).toEqual([actor, "proposal", bytesToHex(head)]);
          }
          const forged = forge(stage, signer, row.bare ? ops : world.completed(ops));
          if (allowed && row.title === "delete the space") {
            await untilDeleted(peer, spaceId, { chain: [...chainOf(world), forged] });
            continue;
          }
          const reply = await peer.push(spaceId, { chain: [...chainOf(world), forged] });
          expect([actor, equalBytes(reply.aclHead, allowed ? sha256(forged) : head)]).toEqual([actor, true]);
          if (!allowed) expect(await rosterOf(spaceId)).toEqual(before as object);
          expect(peer.link.signal.aborted).toBe(false);
        }
      },
    );
  }

  rule("[acl] after all that, the same links bring honest records, and each refusal was told once", async () => {
    const stage = stages.get(true)!;
    const { world } = stage.cast;
    world.act(owner, (context) => addAccounts(context, [{ identity: createAccount().id, permission: "reader" }]));
    const reply = await peers.get("reader")!.push(stage.spaceId, { chain: chainOf(world) });
    expect(bytesToHex(reply.aclHead)).toBe(bytesToHex(world.state.head!));
    await createObject(device.server.client, stage.spaceId);
    const told = warningsOf(device, "refused");
    expect(told.length).toBeGreaterThanOrEqual(1);
    expect(told.length).toBeLessThanOrEqual(peers.size * stages.size);
  });
});
