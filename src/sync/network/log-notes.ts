import { bytesToUtf8, readUint64, utf8ToBytes, writeUint64 } from "../../base/bytes.ts";
import type { Json } from "../../protocol/json.ts";
import type { Replica, ReplicaWrite, Taken } from "../../space/replica.ts";
import { type LogCursor, parseLogCursor } from "./log-cursor.ts";

/** What is noted with a space of the network's logs: how far they were read, and what of them had no room. */

type LogName = "items" | "acl";
const CURSORS = { items: "network.items", acl: "network.acl" } as const satisfies Record<LogName, string>;
/** Set while a store is filled anew: everything is then appended with care for what others append. */
const REFILLING = "network.refilling";
/** How much waited when some of the log had no room, bytes. */
const LEFT_OUT = "network.left-out";
/** Set while some of what was left out is of members: whether for want of room in the space's quota (1) or in their own (0). */
const MISSED = "network.missed";
const ROOM_AGAIN = 0.75;

/** Where a log was read up to; undefined to read it from its start. */
export function cursorOf(replica: Replica, log: LogName): LogCursor | undefined {
  const text = bytesToUtf8(replica.note(CURSORS[log]) ?? new Uint8Array(0));
  if (!text) return undefined;
  try {
    return parseLogCursor(JSON.parse(text) as Json);
  } catch {
    return undefined; // not a cursor: the log is read from its start
  }
}

export const putCursor = (write: ReplicaWrite, log: LogName, cursor: LogCursor): void =>
  write.putNote(CURSORS[log], utf8ToBytes(JSON.stringify(cursor)));

export const isRefilling = (replica: Replica): boolean => replica.note(REFILLING)?.[0] === 1;
export const putRefilling = (write: ReplicaWrite, refilling: boolean): void =>
  write.putNote(REFILLING, Uint8Array.of(refilling ? 1 : 0));

/** Whether some of what the log holds of members had no room here and is missed. */
export function hasMissed(replica: Replica): boolean {
  const missed = replica.note(MISSED);
  return missed !== undefined && replica.misses({ refused: 1, crowded: missed[0]! });
}

/**
 * Some of what was read had no room: whoever used up a quota must not hold up what the others wrote, so the log is read
 * again once there is room.
 */
export function putLeftOut(write: ReplicaWrite, replica: Replica, { refused, crowded }: Taken): void {
  const bytes = new Uint8Array(8);
  writeUint64(bytes, 0, BigInt(replica.waitingBytes()));
  write.putNote(LEFT_OUT, bytes);
  const isCrowded = crowded > 0 || replica.note(MISSED)?.[0] === 1;
  if (refused > 0) write.putNote(MISSED, Uint8Array.of(isCrowded ? 1 : 0));
}

/** Whether the log of changes is to be read from its start: much of what waited has found its place, or bodies are missed. */
export function isToBeReadAgain(replica: Replica): boolean {
  const full = replica.note(LEFT_OUT);
  const hasRoom = full !== undefined && replica.waitingBytes() < ROOM_AGAIN * Number(readUint64(full, 0));
  return hasRoom || replica.hasGivenUp();
}

/** From now on it is read from its start. */
export const readFromStart = (replica: Replica): Promise<void> =>
  replica.write((write) => {
    for (const note of [LEFT_OUT, MISSED, CURSORS.items]) write.dropNote(note);
    write.forgetGivenUp();
  });
