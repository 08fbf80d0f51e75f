import type { SpaceId } from "../base/ids.ts";
import { deriveKey } from "../crypto/derive.ts";
import type { ContentIdentity } from "./chunk-tree.ts";
import { contentKeyOf } from "./content-seal.ts";

/** A content as every reader of its space knows it: enough to find, verify and open its chunks. */
export interface Content extends ContentIdentity {
  readonly spaceId: SpaceId;
  readonly rootCid: string;
  /** Id of the epoch's read key. */
  readonly keyId: Uint8Array;
  /**
   * The epoch's secret from which the network's names for the chunks are made, and with which the chunks are sealed once
   * more.
   */
  readonly channelSecret: Uint8Array;
}

/** The content that a file's row describes; `epoch` is the one that the row names. */
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
