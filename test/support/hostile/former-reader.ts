/**
 * Somebody who reads a space's log on the network with every key that it ever had, and all that follows from them: its
 * data root as it was, or nothing but its account, and each record of the ACL log that it can get at.
 */
import { join } from "node:path";
import { openMetadata } from "../../../src/acl/record/epoch.ts";
import { bytesToUtf8 } from "../../../src/base/bytes.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { decodeCbor } from "../../../src/base/dag-cbor.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { decodeBody } from "../../../src/change/codec/change-body.ts";
import { decodeChange, isDerivedRoot } from "../../../src/change/codec/change-codec.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { deriveKey } from "../../../src/crypto/derive.ts";
import { deriveObjectKey, open } from "../../../src/crypto/seal.ts";
import { genesisOfRoot } from "../../../src/space/genesis.ts";
import { placesOf } from "../../../src/space/port/places.ts";
import type { Space } from "../../../src/space/space.ts";
import { openAclRecord, secretInLink } from "../../../src/sync/network/acl-append.ts";
import { openLogMessage } from "../../../src/sync/network/log-message.ts";
import { type ChannelKeys, deriveChannelKeys, logSubject } from "../../../src/sync/network/subjects.ts";
import { scratchDir } from "../scratch.ts";
import type { ReadMessage } from "../server/stream-reader.ts";
import { openSpaceIn, openSpaceUnder, registryOf } from "../worlds/test-space.ts";

interface ReadLog {
  /** Changes that carry content. */
  readonly changes: number;
  /** The texts of those that open under some key. */
  readonly opened: string[];
}

export interface FormerReader extends AsyncDisposable {
  /** How many read keys it has. */
  readonly keys: number;
  /** Tries every key on every change in these messages. */
  read(messages: readonly ReadMessage[]): ReadLog;
  /** What members say of themselves, as the ACL log has it last, where some key opens it. */
  profiles(): string[];
  /** The tags of the places that it finds. */
  readonly tags: ReadonlySet<string>;
  /** Tries every key on an event as it passed; its text, or undefined. */
  readEvent(subject: string, data: Uint8Array): string | undefined;
}

export interface FormerReaderOptions {
  readonly account: Account;
  readonly spaceId: string;
  readonly transportSecret: Uint8Array;
  /** Its data root (`<root>/<account>/sdk/<space>.db`), when there is one. */
  readonly dataDir?: string;
  /** All that lies on the network. */
  readonly messages: readonly ReadMessage[];
}

const keysOf = (space: Space): Uint8Array[] =>
  space.acl.state.epochs.flatMap(({ epoch }) => space.keys.byId(epoch.keyId) ?? []);

/** Looks into a space in the data root of a server that is stopped. */
export async function inSpaceOf<T>(
  { dataDir, account, spaceId }: { dataDir: string; account: Account; spaceId: string },
  look: (space: Space) => T,
): Promise<T> {
  const space = openSpaceUnder(dataDir, account, spaceId);
  try {
    return look(space);
  } finally {
    await space.close();
  }
}

/** The read keys of a space in the data root of a server that is stopped. */
export const readKeysIn = (dataDir: string, account: Account, spaceId: SpaceId): Promise<Uint8Array[]> =>
  inSpaceOf({ dataDir, account, spaceId }, keysOf);

/** The records of a place that was not looked into yet. */
function recordsOf(
  messages: readonly ReadMessage[],
  channels: Map<string, ChannelKeys>,
  secret: Uint8Array,
): Uint8Array[] {
  const channel = deriveChannelKeys(secret);
  if (channels.has(channel.tag)) return [];
  channels.set(channel.tag, channel);
  return messages
    .filter(({ subject }) => subject === logSubject(channel, "a"))
    .flatMap(({ data }) => {
      const record = openAclRecord(channel, data);
      return record && !secretInLink(record) ? [new Uint8Array(record)] : [];
    });
}

export async function formerReader(options: FormerReaderOptions): Promise<FormerReader> {
  const { account, messages } = options;
  const spaceId = options.spaceId as SpaceId;
  const channels = new Map<string, ChannelKeys>();
  const recordsAt = (secret: Uint8Array) => recordsOf(messages, channels, secret);
  const aclLog = recordsAt(options.transportSecret);
  const scratch = scratchDir("svc-former");
  const genesis = aclLog[0] && genesisOfRoot(aclLog[0]);
  if (!genesis) throw new Error("the ACL log does not begin with a root");
  const space = options.dataDir
    ? openSpaceUnder(options.dataDir, account, spaceId)
    : openSpaceIn(join(scratch.path, "space.db"), genesis, {
        account,
        clock: systemClock,
        registry: () => registryOf(),
      });
  // One by one, as a server does: not all that lies on the network is part of the log.
  for (const record of aclLog) await space.aclService.take([record]);
  // It goes from place to place, as far as its keys lead.
  for (let known = 0; known < channels.size; ) {
    known = channels.size;
    for (const { secret } of placesOf(space))
      for (const record of secret ? recordsAt(secret) : []) await space.aclService.take([record]);
  }
  space.keys.refresh();
  const keys = keysOf(space);
  if (space.acl.state.epochs.length < 2) throw new Error("the ACL log, as it can be read, has no second epoch");

  const openChange = (bytes: Uint8Array): "none" | "sealed" | { text: string } => {
    const change = decodeChange(bytes);
    if (isDerivedRoot(change) || !change.sealed) return "none";
    const objectId = cidFromDigest(change.header.object!);
    for (const key of keys) {
      const plain = open(deriveObjectKey(key, spaceId, objectId, "change"), change.sealed, change.headerBytes);
      const body = plain && decodeBody(plain);
      if (body) return { text: JSON.stringify(body) };
    }
    return "sealed";
  };

  return {
    keys: keys.length,
    tags: new Set(channels.keys()),
    read(log) {
      const read: ReadLog = { changes: 0, opened: [] };
      let changes = 0;
      for (const { subject, data } of log) {
        const channel = [...channels.values()].find((one) => subject === logSubject(one, "c"));
        for (const bytes of (channel && openLogMessage(channel.sealKey, subject, data)) ?? []) {
          const outcome = openChange(new Uint8Array(bytes));
          if (outcome === "none") continue;
          changes++;
          if (outcome !== "sealed") read.opened.push(outcome.text);
        }
      }
      return { ...read, changes };
    },
    profiles: () =>
      [...space.acl.state.members.values()].flatMap(({ account: member, metadata }) => {
        const opened = keys.map((key) => metadata && openMetadata(spaceId, key, accountIdOf(member), metadata));
        return opened.flatMap((profile) => (profile ? [JSON.stringify(profile)] : []));
      }),
    readEvent(subject, data) {
      const channel = channels.get(subject.split(".")[2] ?? "");
      const payload = channel && open(channel.sealKey, data, Buffer.from(subject));
      const outer = payload && (decodeCbor(payload) as { k?: Uint8Array; b?: Uint8Array });
      if (!outer?.k || !outer.b) return undefined;
      for (const key of keys) {
        const signed = open(deriveKey(key, "event", spaceId), outer.b, outer.k);
        if (signed) return bytesToUtf8(signed) ?? Buffer.from(signed).toString("latin1");
      }
      return undefined;
    },
    [Symbol.asyncDispose]: async () => {
      await space.close();
      scratch[Symbol.dispose]();
    },
  };
}
