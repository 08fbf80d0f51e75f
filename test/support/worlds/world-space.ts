/** What the replicas of a world and those who forge for it have in common. */
import { bytesToHex } from "../../../src/base/bytes.ts";
import type { Space } from "../../../src/space/space.ts";
import type { StoredChange } from "../../../src/store/tables/change-table.ts";
import type { Packet } from "./replica-port.ts";
import { ITEMS_TYPE } from "./test-space.ts";

/** Every change in the log, in the order in which it came: parents before what needs them. */
export function* allChanges(space: Space): Generator<StoredChange> {
  for (let after = 0; ; ) {
    const page = space.store.changes.after(after, 200);
    yield* page;
    if (page.length < 200) return;
    after = page[page.length - 1]!.no;
  }
}

export const objectIn = (space: Space) => space.engine.object(space.engine.derivedId(ITEMS_TYPE, ""));

export const packetOf = (kind: Packet["kind"], id: Uint8Array, bytes: Uint8Array): Packet => ({
  id: bytesToHex(id),
  kind,
  bytes,
});
