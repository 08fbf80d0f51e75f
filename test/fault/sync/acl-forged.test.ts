/**
 * The rights matrix against a running server: forged records and proposals sent straight to its sync port, by peers with
 * the real keys of every role, and the same actions over HTTP.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { addAccounts, mintGuestKey, removeAccounts, transferOwnership } from "../../../src/acl/compose/actions.ts";
import type { AclOp } from "../../../src/acl/record/op.ts";
import { encodeAclProposal, encodeAclRecord } from "../../../src/acl/record/record.ts";
import { pendingRequestOf } from "../../../src/acl/reducer/state.ts";
import { bytesToHex, equalBytes } from "../../../src/base/bytes.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import {
  accountOfPhrase,
  type HostilePeer,
  meetServer,
  memberKeys,
  type Offer,
  ownKeys,
  syncPortOf,
  warningsOf,
  worldOf,
} from "../../support/hostile/hostile-peer.ts";
import { rule } from "../../support/rule.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import { type Device, startDevice } from "../../support/server/devices.ts";
import { ABSENT, createObject, createSpace } from "../../support/server/fixtures.ts";
import { ACL_MATRIX, ACL_ROLES, type AclCast, type AclRole, createAclCast } from "../../support/worlds/acl-matrix.ts";
import { aclLogOf, createAccount } from "../../support/worlds/acl-world.ts";

/** `removed`: was a member once. */
type Actor = AclRole | "removed";
const ACTORS: readonly Actor[] = [...ACL_ROLES, "removed"];

interface Stage {
  readonly spaceId: SpaceId;
  readonly cast: AclCast;
  readonly removed: Account;
}

const nameOf = (actor: Actor, withGuest: boolean): string => `${actor} ${withGuest}`;

interface HttpAction {
  method: "POST" | "DELETE";
  path: string;
  body?: object;
  allowed: readonly AclRole[];
}

/** The matrix as requests. */
function httpActions({ cast }: Stage, ownerId: string): HttpAction[] {
  const { world, others, asker } = cast;
  const managers: readonly AclRole[] = ["owner", "admin"];
  const request = cidFromDigest(pendingRequestOf(world.state, asker.signer.publicKey)!.id);
  const invite = cidFromDigest([...world.state.invites.values()][0]!.id);
  const grant = (identity: string, permission: string) => ({ changes: [{ identity, permission }] });
  const add = (permission: string) => ({ accounts: [{ identity: createAccount().id, permission }] });
  const post = (path: string, allowed: readonly AclRole[], body?: object): HttpAction => ({
    method: "POST",
    path,
    allowed,
    ...(body ? { body } : {}),
  });
  return [
    post("/invites", managers, {}),
    post("/invites", managers, { mode: "open", permission: "writer" }),
    { method: "DELETE", path: `/invites/${invite}`, allowed: managers },
    { method: "DELETE", path: "/invites", allowed: managers },
    post("/acl/accept", managers, { requestRecordId: request, permission: "reader" }),
    post("/acl/accept", ["owner"], { requestRecordId: request, permission: "admin" }),
    post("/acl/decline", managers, { identity: asker.id }),
    post("/acl/add", managers, add("writer")),
    post("/acl/add", ["owner"], add("admin")),
    post("/acl/permissions", managers, grant(others.reader.id, "writer")),
    post("/acl/permissions", ["owner"], grant(others.reader.id, "admin")),
    post("/acl/permissions", ["owner"], grant(others.admin.id, "writer")),
    post("/acl/permissions", [], grant(ownerId, "writer")),
    post("/acl/remove", managers, { identities: [others.reader.id] }),
    post("/acl/remove", ["owner"], { identities: [others.admin.id] }),
    post("/acl/remove", [], { identities: [ownerId] }),
    post("/acl/ownership", ["owner"], { newOwner: others.reader.id, oldOwnerPerm: "admin" }),
    post("/guest-key", ["owner"], {}),
    { method: "DELETE", path: "/guest-key", allowed: ["owner"] },
    post("/acl/stop-sharing", ["owner"]),
  ];
}

const signerOf = (stage: Stage, actor: Actor) =>
  (actor === "removed" ? stage.removed : stage.cast.actors[actor]).signer;

/** A record as the next of the log, whoever signs it, whatever it does. */
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
  const peers = new Map<string, HostilePeer>();

  /** A space with everybody in it. Made by the owner's other device, and taken by the server from it. */
  const setStage = async (withGuest: boolean): Promise<Stage> => {
    const space = await createSpace(device.server.client, "stage");
    const world = await worldOf(relay, owner, space.id);
    const cast = createAclCast(world);
    const removed = createAccount();
    world.act(owner, (context) => addAccounts(context, [{ identity: removed.id, permission: "admin" }]));
    world.act(owner, (context) => removeAccounts(context, [removed.id]));
    if (withGuest) world.act(owner, (context) => mintGuestKey(context, cast.guestSeed));
    const reply = await relay.push(space.id, { aclLog: aclLogOf(world) });
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
  const readRoster = async (spaceId: string): Promise<unknown> =>
    (await device.server.client.request("GET", `/v1/spaces/${spaceId}/members`)).json;
  const rosterOf = (spaceId: string) => device.server.client.get<unknown>(`/v1/spaces/${spaceId}/members`);

  beforeAll(async () => {
    device = await startDevice({ lan: true });
    owner = await accountOfPhrase(device.mnemonic);
    port = await syncPortOf(device);
    relay = await meetServer(port, owner, ownKeys(owner));
    for (const withGuest of [false, true]) stages.set(withGuest, await setStage(withGuest));
    for (const [withGuest, stage] of stages) {
      for (const actor of ACTORS) {
        // Who reads nothing has no link of its own: what it forges comes by another device.
        const isLinked = actor === "admin" || actor === "writer" || actor === "reader";
        const account = isLinked ? stage.cast.actors[actor] : undefined;
        const keys = account && memberKeys(account, owner.signer.publicKey, stage.spaceId);
        peers.set(nameOf(actor, withGuest), account && keys ? await meetServer(port, account, keys) : relay);
      }
    }
  }, 60_000);
  afterAll(async () => {
    for (const peer of peers.values()) await peer[Symbol.asyncDispose]();
    await device?.[Symbol.asyncDispose]();
  }, 30_000);
  for (const row of ACL_MATRIX) {
    rule(
      `[ACL-2] only ${row.allowed.join(", ") || "nobody"} may ${row.title}: by a forged record and a proposal`,
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
          const peer = allowed ? relay : peers.get(nameOf(actor, withGuest))!;
          if (!allowed) {
            const pending = encodeAclProposal(
              { space: world.state.space!, basis: head, time: 1, ops: [...ops] },
              signer,
            ).bytes;
            const proposed = await peer.push(spaceId, { aclLog: aclLogOf(world), pending: [pending] });
            expect([actor, "proposal", bytesToHex(proposed.aclHead)]).toEqual([actor, "proposal", bytesToHex(head)]);
          }
          const forged = forge(stage, signer, row.bare ? ops : world.completed(ops));
          if (allowed && row.title === "delete the space") {
            await untilDeleted(peer, spaceId, { aclLog: [...aclLogOf(world), forged] });
            continue;
          }
          const reply = await peer.push(spaceId, { aclLog: [...aclLogOf(world), forged] });
          // The owner's device may have put an epoch behind it before it answered.
          const stands = allowed
            ? (await peer.aclLogOf(spaceId)).some((record) => equalBytes(sha256(record), sha256(forged)))
            : equalBytes(reply.aclHead, head);
          expect([actor, stands]).toEqual([actor, true]);
          if (!allowed) expect(await rosterOf(spaceId)).toEqual(before as object);
          expect(peer.link.signal.aborted).toBe(false);
        }
      },
    );
  }

  /** Gives the server's own account another role, by a new owner. */
  const stepDown = async (role: "admin" | "writer" | "reader" | "removed"): Promise<Stage> => {
    const stage = await setStage(true);
    const { world, others } = stage.cast;
    const kept = role === "removed" ? "reader" : role;
    world.act(owner, (context) => transferOwnership(context, others.writer.id, kept));
    if (role === "removed") world.act(others.writer, (context) => removeAccounts(context, [owner.id]));
    await relay.push(stage.spaceId, { aclLog: aclLogOf(world) }).catch(() => undefined); // it ends for who is removed
    const wanted = role === "removed" ? "none" : role;
    await until(async () => {
      const { ownRole, status } = await device.server.client.get<SpaceInfo>(`/v1/spaces/${stage.spaceId}`);
      return ownRole === wanted && (role !== "removed" || status === "deleted");
    }, `the role ${role}`);
    return stage;
  };

  for (const role of ["owner", "admin", "writer", "reader", "removed", "stranger"] as const) {
    rule(
      `[ACL-2] over HTTP the ${role} may do what the matrix says, and is told the right code otherwise`,
      async () => {
        const isOwner = role === "owner";
        const stage = isOwner || role === "stranger" ? await setStage(true) : await stepDown(role);
        // The one who owns it now is the cast's other writer.
        const theOwner = isOwner ? owner.id : stage.cast.others.writer.id;
        const before = isOwner || role === "stranger" ? undefined : await readRoster(stage.spaceId);
        for (const { method, path, body, allowed } of httpActions(stage, theOwner)) {
          const refusedHere = !(allowed as readonly string[]).includes(role);
          // What the owner may do is done elsewhere; what an admin does without a network is put to the owner's devices.
          if (!refusedHere && isOwner) continue;
          const at = role === "stranger" ? ABSENT : stage.spaceId;
          const url = `/v1/spaces/${at}${path}`;
          if (role === "stranger") await device.server.client.fails(method, url, body, 404, "space.not_found");
          else if (role === "removed") await device.server.client.fails(method, url, body, 409, "space.deleted");
          else if (refusedHere) {
            const error = await device.server.client.fails(method, url, body, 403, "acl.forbidden");
            expect(error.details).toMatchObject({ role });
          } else {
            const reply = await device.server.client.request(method, url, body === undefined ? {} : { body });
            expect([method, path, reply.status < 300]).toEqual([method, path, true]);
          }
        }
        if (before) expect(await readRoster(stage.spaceId)).toEqual(before);
        const written = await device.server.client.request("POST", `/v1/spaces/${stage.spaceId}/objects`, { body: {} });
        expect([role, written.status]).toEqual([
          role,
          { owner: 201, admin: 201, writer: 201, reader: 403, removed: 409, stranger: 201 }[role],
        ]);
      },
    );
  }

  rule("[SYNC-4] after all that, the same links bring honest records, and each refusal was told once", async () => {
    const stage = stages.get(true)!;
    const { world } = stage.cast;
    world.act(owner, (context) => addAccounts(context, [{ identity: createAccount().id, permission: "reader" }]));
    const reply = await peers.get(nameOf("reader", true))!.push(stage.spaceId, { aclLog: aclLogOf(world) });
    expect(bytesToHex(reply.aclHead)).toBe(bytesToHex(world.state.head!));
    await createObject(device.server.client, stage.spaceId);
    const warnings = warningsOf(device, "refused");
    expect(warnings.length).toBeGreaterThanOrEqual(1);
    expect(warnings.length).toBeLessThanOrEqual(peers.size * stages.size);
  });
});
