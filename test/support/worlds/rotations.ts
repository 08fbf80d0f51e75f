/** Rotations of a space's read key, and what then stands on the network. */
import { decodeAclRecord } from "../../../src/acl/record/record.ts";
import { bytesToHex, equalBytes } from "../../../src/base/bytes.ts";
import { changeIdOf } from "../../../src/change/codec/change-stub.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { placesOf } from "../../../src/space/port/places.ts";
import type { Space } from "../../../src/space/space.ts";
import { openAclRecord, secretInLink } from "../../../src/sync/network/acl-append.ts";
import { openLogMessage } from "../../../src/sync/network/log-message.ts";
import { type ChannelKeys, deriveChannelKeys, logSubject } from "../../../src/sync/network/subjects.ts";
import { inSpaceOf } from "../hostile/former-reader.ts";
import type { NatsServer } from "../network/nats.ts";
import { until } from "../server/client.ts";
import type { Device } from "../server/devices.ts";
import { connectWith, type ReadMessage, readStreams } from "../server/stream-reader.ts";
import { createAccount } from "./acl-world.ts";
import { knownAccount } from "./known-account.ts";

/** Adds somebody who never comes, and removes it again: one rotation each. */
export async function rotate(device: Device, spaceId: string, times = 1): Promise<void> {
  const base = `/v1/spaces/${spaceId}/acl`;
  for (let count = 0; count < times; count++) {
    const identity = createAccount().id;
    await device.server.client.post(`${base}/add`, { accounts: [{ identity, permission: "reader" }] }, 204);
    await device.server.client.post(`${base}/remove`, { identities: [identity] }, 204);
  }
}

/** Until a row of the space says so; the space itself may still be on its way. */
export const untilRead = (device: Device, spaceId: string, text: string): Promise<void> =>
  until(
    async () => {
      const reply = await device.server.client.request("POST", `/v1/spaces/${spaceId}/objects/query`, { body: {} });
      return reply.status === 200 && reply.text.includes(text);
    },
    `to read "${text}"`,
    60_000,
  );

/** The places of a space that a data root knows, oldest epoch first as far as the keys tell; its server is stopped. */
export const placesIn = (dataDir: string, account: Account, spaceId: string): Promise<ChannelKeys[]> =>
  inSpaceOf({ dataDir, account, spaceId }, (space) =>
    placesOf(space).flatMap(({ secret }) => (secret ? deriveChannelKeys(secret) : [])),
  );

interface Said {
  readonly link: Uint8Array | undefined;
  /** Of a record. */
  readonly id: string | undefined;
}

/** Of a message, which never changes: it is looked at after each of many schedules. */
const saidByMessage = new WeakMap<ReadMessage, Said | undefined>();

/** What a message of an ACL log says to those who have the keys of its place; undefined where that is nothing. */
function saidBy(message: ReadMessage, keys: ChannelKeys): Said | undefined {
  if (!saidByMessage.has(message)) {
    const bytes = openAclRecord(keys, message.data);
    const link = bytes && secretInLink(bytes);
    const record = bytes && !link ? decodeAclRecord(bytes) : undefined;
    const said = bytes ? { link: link && new Uint8Array(link), id: record && bytesToHex(record.id) } : undefined;
    saidByMessage.set(message, said);
  }
  return saidByMessage.get(message);
}

/**
 * Reads a space's places on the network as one log, and answers what is wrong with it: records that do not stand once, in the
 * log's order and before the end of their place, places without the link to the one before, changes that stand nowhere where
 * they count. `space`: a copy that has everything. What anybody repeats or adds behind the end of a place is no fault.
 */
export function faultsOnNetwork(messages: readonly ReadMessage[], space: Space): string[] {
  const faults: string[] = [];
  const standing: string[] = [];
  const counting = new Set<string>();
  const places = placesOf(space);
  for (const [index, { secret, ending }] of places.entries()) {
    const keys = deriveChannelKeys(secret!);
    const of = (kind: "a" | "c") => messages.filter(({ subject }) => subject === logSubject(keys, kind));
    const opened = of("a").flatMap((message) => {
      const said = saidBy(message, keys);
      return said ? [{ ...said, seq: message.seq }] : [];
    });
    const before = places[index - 1]?.secret;
    const link = opened[0]?.link;
    if (before && !(link && equalBytes(link, before))) faults.push(`place ${index} does not begin with its link`);
    const records = opened.flatMap(({ id, seq }) => (id ? [{ id, seq }] : []));
    const end = ending === undefined ? undefined : records.find(({ id }) => id === ending);
    if (ending !== undefined && !end) faults.push(`place ${index} has no end`);
    const counts = ({ seq }: { seq: number }) => seq <= (end?.seq ?? Number.MAX_SAFE_INTEGER);
    standing.push(...new Set(records.filter(counts).map(({ id }) => id)));
    for (const { subject, data } of of("c").filter(counts))
      for (const bytes of openLogMessage(keys.sealKey, subject, data) ?? [])
        counting.add(bytesToHex(changeIdOf(bytes)));
  }
  const log = space.acl.records().map(({ id }) => bytesToHex(id));
  const inLog = new Set(log);
  // Records of branches that lost stand there, too: changes may name them.
  const found = standing.filter((id) => inLog.has(id));
  if (found.join() !== log.join())
    faults.push(`the log has ${log.length} records, of which its places ${found.length}`);
  for (const { id, writer, counts } of space.store.changes.after(0, 10_000))
    if (counts && writer !== 0 && !counting.has(bytesToHex(id))) faults.push(`change ${bytesToHex(id)} stands nowhere`);
  return faults;
}

/** All that lies on the network, as its operator reads it. */
export async function allOn(nats: NatsServer): Promise<ReadMessage[]> {
  const nc = await connectWith(nats.url, (await knownAccount()).networkKey);
  try {
    return await readStreams(nc);
  } finally {
    await nc.close();
  }
}
