/** Changes that no honest device writes: signed by whoever is given, around any bytes for a body. */
import type { ChangeBody } from "../../src/change/codec/change-body.ts";
import {
  type Change,
  type ChangeHeader,
  decodeChange,
  encodeChange,
  encodeHeader,
} from "../../src/change/codec/change-codec.ts";
import type { ObjectEntry } from "../../src/change/graph/object-cache.ts";
import { deriveObjectKey, seal } from "../../src/crypto/seal.ts";
import type { Signer } from "../../src/crypto/sign.ts";
import type { Space } from "../../src/space/space.ts";

const PLAIN = 0;
const ZSTD = 1;

/** The plain bytes of a body: its JSON text as it stands, which need not be what `JSON.stringify` gives. */
export const bodyBytes = (text: string): Uint8Array =>
  text.length > 100_000
    ? Buffer.concat([Uint8Array.of(ZSTD), Bun.zstdCompressSync(Buffer.from(text))])
    : Buffer.concat([Uint8Array.of(PLAIN), Buffer.from(text)]);

export const bodyOf = (body: ChangeBody): Uint8Array => bodyBytes(JSON.stringify(body));

export interface Forger {
  /** A writer's chain on an object, as `space` knows it; each call writes the next change of it. */
  write(plain: Uint8Array, over?: Partial<ChangeHeader>): { bytes: Uint8Array; id: Uint8Array };
}

/** Continues behind the heads that `space` has of the object, under a writer of the forger's own. */
export function createForger(space: Space, object: ObjectEntry, signer: Signer): Forger {
  const writer = crypto.getRandomValues(new Uint8Array(16));
  const anyChange = space.engine.store.changes.after(0, 50).find(({ seq }) => seq > 0)!;
  const model = (decodeChange(anyChange.bytes) as Change).header;
  const epoch = space.keys.current()!;
  const head = space.acl.head();
  let last: { id: Uint8Array; lamport: number; seq: number } | undefined;

  return {
    write(plain, over = {}) {
      const parents = last ? [last] : object.heads.slice(0, 60);
      const lamport = 1 + Math.max(head.clock, ...parents.map((parent) => parent.lamport));
      const header: ChangeHeader = {
        kind: "change",
        space: model.space,
        object: object.id,
        parents: parents.map(({ id }) => id),
        lamport,
        writer,
        seq: (last?.seq ?? 0) + 1,
        prev: last?.id ?? null,
        author: signer.publicKey,
        time: 1_800_000_000_000,
        acl: head.id,
        keyId: epoch.id,
        ...over,
      };
      const headerBytes = encodeHeader(header);
      const key = deriveObjectKey(epoch.key, space.id, object.idText, "change");
      const made = encodeChange(headerBytes, seal(key, plain, headerBytes), signer);
      last = { id: made.id, lamport: header.lamport, seq: header.seq };
      return made;
    },
  };
}
