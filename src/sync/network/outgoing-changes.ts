import type { Replica, Unpublished } from "../../space/port/replica.ts";
import { isRefilling, putRefilling } from "./log-notes.ts";
import type { OutgoingBatch } from "./log-publisher.ts";

/** How many that wait are looked at to tell whether any is this device's own. */
const LOOKED_AT = 1000;

/**
 * What goes to the network next: this device's own changes, and those of others that nobody else has published for a while.
 * `othersUpto` says up to which number these are.
 */
export async function outgoingOf(
  replica: Replica,
  limits: { readonly maxItems: number; readonly maxBytes: number },
  othersUpto: (newestNo: number) => number,
): Promise<OutgoingBatch> {
  const waiting = replica.unpublished(limits.maxItems);
  const refilling = isRefilling(replica);
  if (waiting.length === 0) {
    if (refilling) await replica.write((write) => putRefilling(write, false));
    return { items: [], exact: false };
  }
  const first = waiting.find(({ isNobodys }) => !isNobodys);
  if (refilling || (first && !first.isOwn)) {
    const upto = refilling ? Number.MAX_SAFE_INTEGER : othersUpto(replica.newestNo());
    const items = waiting.filter(({ no, isOwn }) => no <= upto || isOwn);
    return { items: within(items, limits.maxBytes), exact: refilling || items.some(({ isOwn }) => !isOwn) };
  }
  const end = waiting.findIndex(({ isOwn }) => !isOwn);
  return { items: within(end < 0 ? waiting : waiting.slice(0, end), limits.maxBytes), exact: false };
}

/** Whether the network has yet to give back something that this device wrote. */
export const hasOutgoing = (replica: Replica): boolean =>
  replica.unpublished(LOOKED_AT).some(({ isOwn, isNobodys }) => isOwn && !isNobodys);

function within(items: readonly Unpublished[], maxBytes: number): Uint8Array[] {
  const taken: Uint8Array[] = [];
  let bytes = 0;
  for (const item of items) {
    bytes += item.bytes.length;
    if (taken.length > 0 && bytes > maxBytes) break;
    taken.push(item.bytes);
  }
  return taken;
}
