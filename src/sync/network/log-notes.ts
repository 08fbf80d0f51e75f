import { bytesToUtf8, readUint64, utf8ToBytes, writeUint64 } from "../../base/bytes.ts";
import { BODIES_GIVEN_UP } from "../../change/fold/object-deletions.ts";
import type { Json } from "../../protocol/json.ts";
import type { Space } from "../../space/space.ts";
import { type LogCursor, parseLogCursor } from "./log-cursor.ts";

/** What a space's database notes of the network's logs: how far they were read, and what of them had no room. */

type LogName = "items" | "acl";
const CURSORS = { items: "network.items", acl: "network.acl" } as const satisfies Record<LogName, string>;
/** Set while a store is filled anew: everything is then appended with care for what others append. */
const REFILLING = "network.refilling";
/** How much waited when some of the log had no room, bytes. */
const LEFT_OUT = "network.left-out";
/** Set while some of what was left out is of members. */
const MISSED = "network.missed";
const ROOM_AGAIN = 0.75;

/** Where a log was read up to; undefined to read it from its start. */
export function cursorOf(space: Space, log: LogName): LogCursor | undefined {
  const text = bytesToUtf8(space.engine.store.meta(CURSORS[log]) ?? new Uint8Array(0));
  if (!text) return undefined;
  try {
    return parseLogCursor(JSON.parse(text) as Json);
  } catch {
    return undefined; // not a cursor: the log is read from its start
  }
}

/** Inside a write of the space's engine. */
export function putCursor(space: Space, log: LogName, cursor: LogCursor): void {
  space.engine.store.putMeta(CURSORS[log], utf8ToBytes(JSON.stringify(cursor)));
}

export const isRefilling = ({ engine }: Space): boolean => engine.store.meta(REFILLING)?.[0] === 1;
/** Inside a write of the space's engine. */
export const putRefilling = ({ engine }: Space, refilling: boolean): void =>
  engine.store.putMeta(REFILLING, Uint8Array.of(refilling ? 1 : 0));

/** Whether some of what the log holds of members had no room here. */
export const hasMissed = ({ engine }: Space): boolean => engine.store.meta(MISSED) !== undefined;
/**
 * Some of what was read had no room: whoever used up a quota must not hold up what the others wrote, so the log is read
 * again once there is room. `ofMembers`: it is missed until then. Inside a write of the space's engine.
 */
export function putLeftOut({ engine: { store } }: Space, ofMembers: boolean): void {
  const bytes = new Uint8Array(8);
  writeUint64(bytes, 0, BigInt(store.parked.usage().bytes));
  store.putMeta(LEFT_OUT, bytes);
  if (ofMembers) store.putMeta(MISSED, Uint8Array.of(1));
}

/** Whether the log of changes is to be read from its start: much of what waited has found its place, or bodies are missed. */
export function isToBeReadAgain({ engine: { store } }: Space): boolean {
  const full = store.meta(LEFT_OUT);
  const hasRoom = full !== undefined && store.parked.usage().bytes < ROOM_AGAIN * Number(readUint64(full, 0));
  return hasRoom || store.meta(BODIES_GIVEN_UP) !== undefined;
}

/** From now on it is read from its start. */
export const readFromStart = ({ engine }: Space): Promise<void> =>
  engine.write(() => {
    for (const note of [LEFT_OUT, MISSED, BODIES_GIVEN_UP, CURSORS.items]) engine.store.dropMeta(note);
  });
