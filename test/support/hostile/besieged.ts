/**
 * A space on the LAN that an owner's server and an honest member's server share, and a second member whose keys are in the
 * test's hands: what it does to them, and whether they go on.
 */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { addAccounts } from "../../../src/acl/compose/actions.ts";
import type { AccountId, SpaceId } from "../../../src/base/ids.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { parseAccountId } from "../../../src/crypto/account-id.ts";
import { until } from "../server/client.ts";
import { type Device, joinOpen, rowsOf, setName, startDevice } from "../server/devices.ts";
import { createObject, createSpace } from "../server/fixtures.ts";
import { type AclWorld, aclLogOf, createAccount } from "../worlds/acl-world.ts";
import {
  accountOfPhrase,
  type HostilePeer,
  meetServer,
  memberKeys,
  type Offer,
  ownKeys,
  syncPortOf,
  worldOf,
} from "./hostile-peer.ts";

const WAIT_MS = 45_000;

interface SpaceDebug {
  parked: number;
  quarantined: { id: string; code: string; reason: string }[];
}

export interface Besieged extends AsyncDisposable {
  readonly server: Device;
  readonly honest: Device;
  readonly owner: Account;
  /** A genuine writer of the space, whose keys the test has. */
  readonly writer: Account;
  readonly spaceId: SpaceId;
  readonly objectId: string;
  /** As of the last `meetAgain`. */
  readonly world: AclWorld;
  /** Reads the ACL log anew. */
  meetAgain(): Promise<void>;
  /** The space's true ACL log, and whatever else is to be offered. */
  offer(frames?: Offer["frames"]): Offer;
  /** Meets a server as the writer; by default the owner's. */
  join(device?: Device): Promise<HostilePeer>;
  debug(device?: Device): Promise<SpaceDebug>;
  /** Bytes that the space takes on a server's disk. */
  bytesOnDisk(device?: Device): number;
  /** Resolves once an edit of the honest member has arrived at the owner's server. */
  goesOn(): Promise<void>;
  /** Ends the links that `join` made. */
  partAll(): Promise<void>;
}

export async function besiege(): Promise<Besieged> {
  const server = await startDevice({ lan: true });
  const honest = await startDevice({ lan: true });
  const owner = await accountOfPhrase(server.mnemonic);
  const writer = createAccount();
  const port = await syncPortOf(server);
  const spaceId = (await createSpace(server.server.client, "besieged")).id as SpaceId;
  const opened: HostilePeer[] = [];
  let edits = 0;
  const readWorld = async (): Promise<AclWorld> => {
    await using relay = await meetServer(port, owner, ownKeys(owner));
    return await worldOf(relay, owner, spaceId);
  };
  let world = await readWorld();
  world.act(owner, (context) => addAccounts(context, [{ identity: writer.id, permission: "writer" }]));
  const offer = (frames: Offer["frames"] = []): Offer => ({ aclLog: aclLogOf(world), frames });
  {
    await using relay = await meetServer(port, owner, ownKeys(owner));
    await relay.push(spaceId, offer());
  }
  const objectId = (await createObject(server.server.client, spaceId)).id;
  await joinOpen(server, honest, spaceId);
  await until(async () => (await rowsOf(honest, spaceId)).includes(objectId), "the object", WAIT_MS);
  world = await readWorld();

  const besieged: Besieged = {
    server,
    honest,
    owner,
    writer,
    spaceId,
    objectId,
    get world() {
      return world;
    },
    async meetAgain() {
      world = await readWorld();
    },
    offer,
    async join(device = server) {
      const keys = memberKeys(writer, parseAccountId(device.accountId as AccountId)!, spaceId);
      const peer = await meetServer(await syncPortOf(device), writer, keys);
      peer.offers.set(spaceId, offer());
      opened.push(peer);
      return peer;
    },
    debug: (device = server) => device.server.client.get<SpaceDebug>(`/v1/spaces/${spaceId}/debug`),
    bytesOnDisk: (device = server) => spaceBytesOf(device, spaceId),
    async goesOn() {
      const name = `honest edit ${++edits}`;
      await setName(honest, spaceId, objectId, name);
      await until(async () => (await rowsOf(server, spaceId)).includes(name), `the ${name}`, WAIT_MS);
    },
    async partAll() {
      for (const peer of opened.splice(0)) await peer[Symbol.asyncDispose]();
    },
    async [Symbol.asyncDispose]() {
      await besieged.partAll();
      await honest[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
  await besieged.goesOn();
  return besieged;
}

/** Bytes of a space's database on a server's disk, however much of them is in its log still. */
export function spaceBytesOf({ server, accountId }: Device, spaceId: string): number {
  const db = new Database(join(server.dataDir, accountId, "sdk", `${spaceId}.db`), { readonly: true });
  try {
    const pages = db.query<{ page_count: number }, []>("PRAGMA page_count").get()!.page_count;
    return pages * db.query<{ page_size: number }, []>("PRAGMA page_size").get()!.page_size;
  } finally {
    db.close();
  }
}

/** Processor time that a server has used, milliseconds. */
export function processorMsOf({ server }: Pick<Device, "server">): number {
  const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  const TICKS_A_SECOND = 100;
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_A_SECOND;
}
