import type { Space } from "../../space/space.ts";
import type { Taken } from "../intake.ts";
import { isRefilling, putRefilling } from "./log-notes.ts";
import type { OutgoingBatch } from "./log-publisher.ts";

/** How many that wait are looked at to tell whether any is this device's own. */
const LOOKED_AT = 1000;

/** The number of the writer under which this device writes; undefined before its first change. */
function ownWriterOf({ engine, accountKey }: Space): number | undefined {
  const id = engine.writerId();
  return id && engine.store.changes.writer(accountKey, id)?.no;
}

/**
 * What goes to the network next: this device's own changes, and those of others that nobody else has published for a while.
 * `othersUpto` says up to which number these are.
 */
export async function outgoingOf(
  space: Space,
  limits: { readonly maxItems: number; readonly maxBytes: number },
  othersUpto: (newestNo: number) => number,
): Promise<OutgoingBatch> {
  const { sync } = space.engine.store;
  const waiting = sync.unconfirmed("network", limits.maxItems);
  const refilling = isRefilling(space);
  if (waiting.length === 0) {
    if (refilling) await space.engine.write(() => putRefilling(space, false));
    return { items: [], exact: false };
  }
  const own = ownWriterOf(space);
  const isOwn = (writer: number): boolean => writer === 0 || writer === own;
  const first = waiting.find(({ writer }) => writer !== 0);
  if (refilling || (first && !isOwn(first.writer))) {
    const upto = refilling ? Number.MAX_SAFE_INTEGER : othersUpto(sync.newestNo());
    const items = waiting.filter(({ no, writer }) => no <= upto || isOwn(writer));
    return { items: within(items, limits.maxBytes), exact: items.some(({ writer }) => !isOwn(writer)) || refilling };
  }
  const end = waiting.findIndex(({ writer }) => !isOwn(writer));
  return { items: within(end < 0 ? waiting : waiting.slice(0, end), limits.maxBytes), exact: false };
}

/** Whether the network has yet to give back something that this device wrote. */
export function hasOutgoing(space: Space): boolean {
  const own = ownWriterOf(space);
  return space.engine.store.sync.unconfirmed("network", LOOKED_AT).some(({ writer }) => writer === own);
}

/** Counts what the network gave as kept there. Inside a write of the space's engine. */
export function confirmTaken({ engine }: Space, taken: Taken): void {
  const { sync } = engine.store;
  const ids = taken.ids.filter((_, index) => taken.kept[index]);
  taken.ids.forEach((id, index) => {
    if (taken.kept[index] && taken.verdicts[index]!.kind === "parked") sync.confirmEarly("network", id);
  });
  sync.confirm(
    "network",
    ids.flatMap((id) => sync.placeOf(id)?.no ?? []),
  );
  sync.settleEarly("network");
}

function within(items: readonly { readonly bytes: Uint8Array }[], maxBytes: number): Uint8Array[] {
  const taken: Uint8Array[] = [];
  let bytes = 0;
  for (const item of items) {
    bytes += item.bytes.length;
    if (taken.length > 0 && bytes > maxBytes) break;
    taken.push(item.bytes);
  }
  return taken;
}
