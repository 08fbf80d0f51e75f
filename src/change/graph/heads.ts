import { compareBytes, equalBytes } from "../../base/bytes.ts";

/** A change that no other change of its object names as a parent. */
export interface HeadRef {
  no: number;
  id: Uint8Array;
  lamport: number;
  aclPos: number;
}

/** Where an id stands, or would, among heads sorted by id. */
function indexFor(heads: readonly HeadRef[], id: Uint8Array): number {
  let [from, to] = [0, heads.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compareBytes(heads[middle]!.id, id) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * The heads once a change has come behind its parents: sorted by id, as the heads before are. An object may have as many
 * heads as somebody cares to make, so they are copied once and not gone through otherwise.
 */
export function headsAfter(before: readonly HeadRef[], parents: readonly Uint8Array[], head: HeadRef): HeadRef[] {
  const heads = [...before];
  for (const parent of parents) {
    const at = indexFor(heads, parent);
    if (heads[at] && equalBytes(heads[at].id, parent)) heads.splice(at, 1);
  }
  heads.splice(indexFor(heads, head.id), 0, head);
  return heads;
}

/** What to add to the heads that are stored, and what to drop from them, by the changes' numbers. Both sorted by id. */
export function headsChanged(
  stored: readonly HeadRef[],
  now: readonly HeadRef[],
): { added: number[]; dropped: number[] } {
  const added: number[] = [];
  const dropped: number[] = [];
  for (let i = 0, j = 0; i < stored.length || j < now.length; ) {
    const [was, is] = [stored[i], now[j]];
    if (was && is && was.no === is.no) {
      i++;
      j++;
    } else if (!is || (was && compareBytes(was.id, is.id) < 0)) {
      dropped.push(was!.no);
      i++;
    } else {
      added.push(is.no);
      j++;
    }
  }
  return { added, dropped };
}
