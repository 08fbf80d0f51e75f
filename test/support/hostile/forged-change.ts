/** Changes that no honest device writes: signed by whoever is given, around any bytes for a body. */
import { equalBytes } from "../../../src/base/bytes.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { type ChangeBody, decodeBody } from "../../../src/change/codec/change-body.ts";
import {
  type Change,
  type ChangeHeader,
  decodeChange,
  encodeChange,
  encodeHeader,
  isDerivedRoot,
} from "../../../src/change/codec/change-codec.ts";
import type { ObjectEntry } from "../../../src/change/graph/object-cache.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { deriveObjectKey, open, seal } from "../../../src/crypto/seal.ts";
import type { Signer } from "../../../src/crypto/sign.ts";
import type { Space } from "../../../src/space/space.ts";
import { decodePullReply, encodePullRequest } from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import type { AclWorld } from "../worlds/acl-world.ts";
import type { HostilePeer } from "./hostile-peer.ts";

const PLAIN = 0;
const ZSTD = 1;

/** A frame that zstd skips, of so many bytes and a few. */
function padding(bytes: number): Uint8Array {
  const frame = Buffer.alloc(8 + bytes);
  frame.writeUInt32LE(0x184d_2a50, 0);
  frame.writeUInt32LE(bytes, 4);
  return frame;
}

/** The same, as small as zstd makes it: smaller than what it makes others store is paid for with, as a rule. */
export const packedBytes = (text: string): Uint8Array =>
  Buffer.concat([Uint8Array.of(ZSTD), Bun.zstdCompressSync(Buffer.from(text))]);

/** The same, with so much behind it that it is paid for. */
export const paidBytes = (text: string, stored = text.length): Uint8Array =>
  Buffer.concat([packedBytes(text), padding(Math.ceil(stored / 32))]);

/** The plain bytes of a body: its JSON text as it stands, which need not be what `JSON.stringify` gives. */
export const bodyBytes = (text: string): Uint8Array =>
  text.length > 100_000 ? paidBytes(text) : Buffer.concat([Uint8Array.of(PLAIN), Buffer.from(text)]);

export const bodyOf = (body: ChangeBody): Uint8Array => bodyBytes(JSON.stringify(body));

/** An entry of a body that sets a field: all three as JSON texts would have them, the value as it stands. */
export const setOf = (id: string, path: string, value: string): string =>
  `{"id":${JSON.stringify(id)},"upsert":true,"ops":[{"type":"$set","path":${JSON.stringify(path)},"value":${value}}]}`;

export interface Forger {
  /** A writer's chain on an object; each call writes the next change of it. */
  write(plain: Uint8Array, over?: Partial<ChangeHeader>): { bytes: Uint8Array; id: Uint8Array };
}

interface Place {
  readonly spaceId: SpaceId;
  readonly space: Uint8Array;
  readonly object: Uint8Array;
  readonly heads: readonly { readonly id: Uint8Array; readonly lamport: number }[];
  readonly epoch: { readonly id: Uint8Array; readonly key: Uint8Array };
  readonly acl: { readonly id: Uint8Array; readonly clock: number };
}

/** Continues behind these heads, under a writer of the forger's own. */
function createForgerAt({ spaceId, space, object, heads, epoch, acl }: Place, signer: Signer): Forger {
  const writer = crypto.getRandomValues(new Uint8Array(16));
  let last: { id: Uint8Array; lamport: number; seq: number } | undefined;
  return {
    write(plain, over = {}) {
      const parents = last ? [last] : heads.slice(0, 60);
      const header: ChangeHeader = {
        kind: "change",
        space,
        object,
        parents: parents.map(({ id }) => id).sort(Buffer.compare),
        lamport: 1 + Math.max(acl.clock, ...parents.map((parent) => parent.lamport)),
        writer,
        seq: (last?.seq ?? 0) + 1,
        prev: last?.id ?? null,
        author: signer.publicKey,
        time: 1_800_000_000_000,
        acl: acl.id,
        keyId: epoch.id,
        ...over,
      };
      const headerBytes = encodeHeader(header);
      const key = deriveObjectKey(epoch.key, spaceId, cidFromDigest(object), "change");
      const made = encodeChange(headerBytes, seal(key, plain, headerBytes), signer);
      last = { id: made.id, lamport: header.lamport, seq: header.seq };
      return made;
    },
  };
}

/** Continues behind the heads that `space` has of the object. */
export function createForger(space: Space, object: ObjectEntry, signer: Signer): Forger {
  const anyChange = space.store.changes.after(0, 50).find(({ seq }) => seq > 0)!;
  const model = (decodeChange(anyChange.bytes) as Change).header;
  const place = {
    spaceId: space.id,
    space: model.space,
    object: object.id,
    heads: object.heads,
    epoch: space.keys.current()!,
    acl: space.acl.head(),
  };
  return createForgerAt(place, signer);
}

/** Every change that a running server gives to a peer. */
async function changesAt(peer: HostilePeer, spaceId: string): Promise<Uint8Array[]> {
  const changes: Uint8Array[] = [];
  for (let cursor = 0; ; ) {
    const request = encodePullRequest({ space: spaceId, vector: [], cursor, chains: [], held: [] });
    const reply = decodePullReply(await peer.link.request(SYNC_KINDS.pull, request));
    changes.push(...reply.changes);
    if (reply.next === 0) return changes;
    cursor = reply.next;
  }
}

/**
 * Continues an object of a running server, by what a peer was given of it and by a member's keys. `beside` continues behind the same
 * changes.
 */
export async function createForgerFor(
  peer: HostilePeer,
  { world, member, object, signer }: { world: AclWorld; member: Account; object: Uint8Array; signer: Signer },
): Promise<Forger & { readonly bodies: readonly ChangeBody[]; beside(other: Signer): Forger }> {
  const { spaceId } = world.genesis;
  const keys = world.keysOf(member);
  const decoded = (await changesAt(peer, spaceId)).map((bytes) => decodeChange(bytes));
  const changes = decoded.filter(
    (change): change is Change => !isDerivedRoot(change) && equalBytes(change.header.object ?? change.id, object),
  );
  const named = new Set(changes.flatMap(({ header }) => header.parents.map((id) => id.toHex())));
  const heads = changes
    .filter(({ id }) => !named.has(id.toHex()))
    .map(({ id, header }) => ({ id, lamport: header.lamport }));
  const bodies = changes.flatMap(({ header, headerBytes, sealed }) => {
    const key = sealed && keys.byId(header.keyId);
    const plain = key && open(deriveObjectKey(key, spaceId, cidFromDigest(object), "change"), sealed, headerBytes);
    return (plain && decodeBody(plain)?.body) ?? [];
  });
  // What is derived begins with a root that nobody signs.
  const behind = heads.length > 0 ? heads : [{ id: object, lamport: 0 }];
  const acl = { id: world.state.head!, clock: world.state.clocks.at(-1)! };
  const place = { spaceId, space: world.state.space!, object, heads: behind, epoch: keys.current()!, acl };
  return { ...createForgerAt(place, signer), bodies, beside: (other) => createForgerAt(place, other) };
}
