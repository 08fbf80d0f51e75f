/**
 * A space on a network whose logs somebody with a token of the space writes into as it likes: two servers of its members, and
 * what the attacker holds.
 */
import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { addAccounts, mintGuestKey, removeAccounts, revokeGuestKey } from "../../../src/acl/compose/actions.ts";
import { bytesToHex, utf8ToBytes } from "../../../src/base/bytes.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { seal } from "../../../src/crypto/seal.ts";
import { sealLogMessage } from "../../../src/sync/network/log-message.ts";
import { type ChannelKeys, deriveChannelKeys, logSubject } from "../../../src/sync/network/subjects.ts";
import { decodeState, encodeStateRequest } from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import { startNats } from "../network/nats.ts";
import { until } from "../server/client.ts";
import { type Device, rowsOf, setName, startDevice } from "../server/devices.ts";
import { createObject, createSpace } from "../server/fixtures.ts";
import { type AclCast, createAclCast } from "../worlds/acl-matrix.ts";
import { type AclWorld, aclLogOf, createAccount } from "../worlds/acl-world.ts";
import { accountOfPhrase, meetServer, ownKeys, syncPortOf, worldOf } from "./hostile-peer.ts";

interface Roster {
  readonly members: { identity: string; permission: string; status: string }[];
}

export interface AttackedNetwork extends AsyncDisposable {
  /** The owner's. */
  readonly server: Device;
  /** A member's. */
  readonly honest: Device;
  readonly owner: Account;
  /** Was a member. */
  readonly removed: Account;
  /** Of a guest key that was revoked. */
  readonly formerGuest: Account;
  readonly spaceId: SpaceId;
  readonly objectId: string;
  readonly cast: AclCast;
  readonly connection: NatsConnection;
  readonly js: JetStreamClient;
  readonly keys: ChannelKeys;
  /** The ACL log as it stands at the owner's. */
  worldNow(): Promise<AclWorld>;
  /** Writers in the first page of the vector that the owner's server compares with a peer in every round. */
  writersShown(): Promise<number>;
  rosterOf(device: Device): Promise<Roster>;
  putRecord(bytes: Uint8Array): Promise<unknown>;
  putChanges(changes: readonly Uint8Array[]): Promise<unknown>;
  /** Has the owner's server take changes from a peer on its LAN. */
  pushToServer(changes: readonly Uint8Array[]): Promise<void>;
  /** Edits pass both ways. */
  honestSyncGoesOn(): Promise<void>;
}

export async function openAttackedNetwork(waitMs: number): Promise<AttackedNetwork> {
  await using opened = new AsyncDisposableStack();
  const nats = opened.use(await startNats());
  const server = opened.use(await startDevice({ network: nats.url, lan: true }));
  const honest = opened.use(await startDevice({ network: nats.url }));
  const owner = await accountOfPhrase(server.mnemonic);
  const removed = createAccount();
  const formerGuestSeed = randomBytes(32);
  const spaceId = (await createSpace(server.server.client, "open sea")).id as SpaceId;
  const objectId = (await createObject(server.server.client, spaceId)).id;
  const relay = opened.use(await meetServer(await syncPortOf(server), owner, ownKeys(owner)));
  const worldNow = () => worldOf(relay, owner, spaceId);
  const world = await worldNow();
  const cast = createAclCast(world);
  world.act(owner, (context) => addAccounts(context, [{ identity: removed.id, permission: "writer" }]));
  world.act(owner, (context) => removeAccounts(context, [removed.id]));
  world.act(owner, (context) => mintGuestKey(context, formerGuestSeed));
  world.act(owner, revokeGuestKey);
  world.act(owner, (context) => mintGuestKey(context, cast.guestSeed));
  const { aclHead } = await relay.push(spaceId, { aclLog: aclLogOf(world) });
  if (bytesToHex(aclHead) !== bytesToHex(world.state.head!)) throw new Error("the server did not take the cast");
  const base = `/v1/spaces/${spaceId}`;
  const accounts = [{ identity: honest.accountId, permission: "writer" }];
  await server.server.client.post(`${base}/acl/add`, { accounts }, 204);
  const { client } = honest.server;
  const accepts = async () => (await client.request("POST", `${base}/invite/accept`)).status < 300;
  await until(accepts, "the invitation", waitMs);
  const reads = async () => (await client.request("POST", `${base}/objects/query`, { body: {} })).status === 200;
  await until(reads, "the space", waitMs);
  const latest = await worldNow();
  const keys = deriveChannelKeys(latest.keysOf(owner).transportSecret()!);
  const connection = await connect({ servers: nats.url });
  opened.defer(() => connection.close());
  const js = jetstream(connection);
  let edits = 0;
  const owned = opened.move();
  return {
    server,
    honest,
    owner,
    removed,
    formerGuest: createAccount(formerGuestSeed),
    spaceId,
    objectId,
    cast: { ...cast, world: latest },
    connection,
    js,
    keys,
    async writersShown() {
      const request = { space: spaceId, aclHead: randomBytes(32), pending: randomBytes(32), digest: randomBytes(32) };
      return decodeState(await relay.link.request(SYNC_KINDS.state, encodeStateRequest(request))).vector.length;
    },
    worldNow,
    rosterOf: (device) => device.server.client.get<Roster>(`${base}/members`),
    putRecord(bytes) {
      const subject = logSubject(keys, "a");
      return js.publish(subject, seal(keys.sealKey, bytes, utf8ToBytes(subject)));
    },
    putChanges(changes) {
      const subject = logSubject(keys, "c");
      return js.publish(subject, sealLogMessage(keys.sealKey, subject, changes));
    },
    async pushToServer(changes) {
      await relay.push(spaceId, { aclLog: await relay.aclLogOf(spaceId), frames: [changes] });
    },
    async honestSyncGoesOn() {
      for (const [from, to] of [
        [server, honest],
        [honest, server],
      ] as const) {
        const name = `honest edit ${++edits}`;
        await setName(from, spaceId, objectId, name);
        await until(async () => (await rowsOf(to, spaceId)).includes(name), `the ${name}`, waitMs);
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
