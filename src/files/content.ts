import type { SpaceId } from "../base/ids.ts";
import { deriveKey } from "../crypto/derive.ts";
import type { ContentIdentity } from "./chunk-tree.ts";
import { contentKeyOf } from "./content-seal.ts";

/** A content as whoever can read its space knows it: enough to find, verify and open its chunks. */
export interface Content extends ContentIdentity {
  readonly spaceId: SpaceId;
  readonly rootCid: string;
  /** Names the epoch. */
  readonly keyId: Uint8Array;
  /** The epoch's secret by which the network names the chunks and seals them once more. */
  readonly channelSecret: Uint8Array;
}

/** What a file's row says of its content; `epoch` is the one that it names. */
export function contentOf(
  spaceId: SpaceId,
  epoch: { readonly id: Uint8Array; readonly key: Uint8Array },
  row: { readonly rootCid: string; readonly size: number; readonly hash: Uint8Array },
): Content {
  return {
    spaceId,
    ...row,
    keyId: new Uint8Array(epoch.id),
    key: contentKeyOf(epoch.key, spaceId, row.hash),
    channelSecret: deriveKey(epoch.key, "file-channel", spaceId),
  };
}
