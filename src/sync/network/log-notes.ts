import { bytesToHex, bytesToUtf8, hexToBytes, readUint64, utf8ToBytes, writeUint64 } from "../../base/bytes.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { Replica, ReplicaWrite, Taken } from "../../space/port/replica.ts";
import { type LogCursor, parseLogCursor } from "./log-cursor.ts";

/** What a space's database notes of its places on the network: how far they were read, and what of them had no room. */

/** Set while a store is filled anew: everything is then appended with care for what others append. */
const REFILLING = "network.refilling";
/** How much waited when some of the log had no room, bytes. */
const LEFT_OUT = "network.left-out";
/** Set while some of what was left out is of members: whether for want of room in the space's quota (1) or in their own (0). */
const MISSED = "network.missed";
/** Set while a store is known to lack something that was read there. */
const LOST = "network.lost";
const ROOM_AGAIN = 0.75;

/** Where the record stands with which a place ends. */
export interface PlaceEnd {
  /** Hex of the record's id. */
  readonly record: string;
  /** Its first sequence in the stream. */
  readonly seq: number;
}

/** What is noted of one place. */
export interface PlaceNote {
  readonly items?: LogCursor | undefined;
  readonly acl?: LogCursor | undefined;
  readonly end?: PlaceEnd | undefined;
  /** It leads to the place before. */
  readonly linked?: boolean;
  /** It has ended, and all of it that counts was read. */
  readonly read?: boolean;
}

/** The note of the place of an epoch; empty where nothing was read. */
export function placeNote(replica: Replica, keyId: string): PlaceNote {
  const text = bytesToUtf8(replica.placeNote(hexToBytes(keyId)!) ?? new Uint8Array(0));
  if (!text) return {};
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return {}; // no note: the place is read from its start
  }
  return isJsonObject(value) ? noteIn(value) : {};
}

function noteIn({ items, acl, end, linked, read }: JsonObject): PlaceNote {
  const isEnd = isJsonObject(end) && typeof end["record"] === "string" && typeof end["seq"] === "number";
  return {
    items: parseLogCursor(items),
    acl: parseLogCursor(acl),
    ...(isEnd ? { end: { record: String(end["record"]), seq: Number(end["seq"]) } } : {}),
    linked: linked === true,
    read: read === true,
  };
}

/** Adds to what is noted of a place. */
export function notePlace(write: ReplicaWrite, replica: Replica, keyId: string, more: PlaceNote): void {
  const note = { ...placeNote(replica, keyId), ...more };
  write.putPlaceNote(hexToBytes(keyId)!, utf8ToBytes(JSON.stringify(note)));
}

/** Ids (hex) of the read keys of all places of which something is noted. */
export const notedPlaces = (replica: Replica): string[] => replica.notedPlaces().map(bytesToHex);

/** Nothing is known of any place any more. */
export function forgetPlaces(write: ReplicaWrite, replica: Replica): void {
  for (const keyId of replica.notedPlaces()) write.dropPlaceNote(keyId);
  write.dropNote(LOST);
  write.forgetPublished();
  write.forgetRecordsPublished({ quietly: true });
  putRefilling(write, true);
}

/** Whether a store lacks something that was read there, and the other places are to be looked into. */
export const hasLost = (replica: Replica): boolean => replica.note(LOST) !== undefined;
/** A log is not the one that was read: it begins anew, and if there are other places, so do they. */
export function putLost(write: ReplicaWrite, replica: Replica): void {
  if (replica.notedPlaces().length > 1) write.putNote(LOST, Uint8Array.of(1));
}

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

/** Whether the logs of changes are to be read from their start: much of what waited has found its position, or bodies are missed. */
export function isToBeReadAgain(replica: Replica): boolean {
  const full = replica.note(LEFT_OUT);
  const hasRoom = full !== undefined && replica.waitingBytes() < ROOM_AGAIN * Number(readUint64(full, 0));
  return hasRoom || replica.hasGivenUp();
}

/** From now on they are read from their start. */
export const readFromStart = (replica: Replica): Promise<void> =>
  replica.write((write) => {
    for (const note of [LEFT_OUT, MISSED]) write.dropNote(note);
    for (const keyId of notedPlaces(replica)) notePlace(write, replica, keyId, { items: undefined, read: false });
    write.forgetGivenUp();
  });
