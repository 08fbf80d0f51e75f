/**
 * What a process did to files, from `strace -f -y -xx`, and the disk as it may be found after the power went at some moment of it:
 * what was synced is there; of what was written after the last sync of its file each write is there, or not, or some of its
 * sectors are. Directories are taken as synced: files here are made before anything is promised about them.
 */
import { closeSync, existsSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import type { Rng } from "../support/rng.ts";

export type DiskCall =
  | { readonly kind: "write"; readonly path: string; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: "truncate"; readonly path: string; readonly size: number }
  | { readonly kind: "sync"; readonly path: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "rename"; readonly path: string; readonly to: string }
  /** Bytes that left over a socket. */
  | { readonly kind: "sent"; readonly text: string };

const SECTOR = 512;

const unhex = (text: string): Buffer => Buffer.from(text.replaceAll("\\x", ""), "hex");

/** Calls in the order in which they took effect. Throws for a write that was not logged whole. */
export function readDiskLog(text: string, isOurs: (path: string) => boolean): DiskCall[] {
  const calls: DiskCall[] = [];
  const begun = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, thread, rest] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    if (!thread || rest === undefined) continue;
    if (rest.endsWith("<unfinished ...>")) {
      const part = rest.slice(0, -"<unfinished ...>".length);
      // What is sent counts from when it begins to leave.
      if (/^send/.test(part)) pushCall(calls, part, isOurs);
      else begun.set(thread, part);
      continue;
    }
    const resumed = /^<\.\.\. (\w+) resumed>(.*)$/.exec(rest);
    const whole = resumed ? `${begun.get(thread) ?? ""}${resumed[2]}` : rest;
    if (resumed) begun.delete(thread);
    if (!/ = -1 /.test(whole)) pushCall(calls, whole, isOurs);
  }
  return calls;
}

function pushCall(calls: DiskCall[], line: string, isOurs: (path: string) => boolean): void {
  const sent = /^send(?:to|msg)\(\d+<[^>]*>, (?:.*?)"((?:\\x[0-9a-f]{2})*)"/.exec(line);
  if (sent) {
    calls.push({ kind: "sent", text: unhex(sent[1]!).toString("latin1") });
    return;
  }
  const removed = /^unlink(?:at)?\((?:AT_FDCWD<[^>]*>, )?"((?:\\x[0-9a-f]{2})*)"/.exec(line);
  if (removed) {
    const path = unhex(removed[1]!).toString();
    if (isOurs(path)) calls.push({ kind: "remove", path });
    return;
  }
  const renamed = /^rename(?:at2?)?\(.*?"((?:\\x[0-9a-f]{2})*)".*?"((?:\\x[0-9a-f]{2})*)"/.exec(line);
  if (renamed) {
    const [path, to] = [unhex(renamed[1]!).toString(), unhex(renamed[2]!).toString()];
    if (isOurs(to)) calls.push({ kind: "rename", path, to });
    return;
  }
  const [, name, shown, rest] = /^(\w+)\(\d+<([^>]*)>(.*)$/.exec(line) ?? [];
  const path = shown?.includes("\\x") ? unhex(shown).toString() : shown;
  if (!name || path === undefined || rest === undefined || !isOurs(path)) return;
  if (/^f(data)?sync$/.test(name)) calls.push({ kind: "sync", path });
  else if (name === "ftruncate") calls.push({ kind: "truncate", path, size: Number(/^, (\d+)/.exec(rest)![1]) });
  else if (name === "pwrite64") {
    const [, hex, length, at] = /^, "((?:\\x[0-9a-f]{2})*)", (\d+), (\d+) ?\)/.exec(rest) ?? [];
    const bytes = unhex(hex ?? "");
    if (bytes.length !== Number(length)) throw new Error(`a write of ${length} bytes was logged in part`);
    calls.push({ kind: "write", path, at: Number(at), bytes });
  } else if (/^(p?writev|write)$/.test(name)) throw new Error(`${name} to ${path}: not one of those that SQLite makes`);
}

/** Carries out what the disk has of the first `count` calls. `placeOf`: where a file lies now. */
export function replayDisk(
  calls: readonly DiskCall[],
  count: number,
  rng: Rng,
  placeOf: (path: string) => string,
): void {
  const lastSync = new Map<string, number>();
  for (const [index, call] of calls.slice(0, count).entries()) if (call.kind === "sync") lastSync.set(call.path, index);
  for (const [index, call] of calls.slice(0, count).entries()) {
    if (call.kind === "sent" || call.kind === "sync") continue;
    const place = placeOf(call.path);
    if (call.kind === "remove") rmSync(place, { force: true });
    else if (call.kind === "rename") renameSync(place, placeOf(call.to));
    else {
      const isSynced = index < (lastSync.get(call.path) ?? -1);
      if (call.kind === "truncate") {
        if (isSynced || rng.chance(0.5)) inFile(place, (file) => ftruncateSync(file, call.size));
      } else
        inFile(place, (file) => writePart(file, call.at, call.bytes, isSynced ? 1 : rng.pick([0, 0, 1, 0.5]), rng));
    }
  }
}

function inFile(path: string, run: (file: number) => void): void {
  const file = openSync(path, existsSync(path) ? "r+" : "w+");
  try {
    run(file);
  } finally {
    closeSync(file);
  }
}

/** Of a write, each sector with this probability: 1 is all of it, 0 none. */
function writePart(file: number, at: number, bytes: Uint8Array, share: number, rng: Rng): void {
  if (share === 1) {
    writeSync(file, bytes, 0, bytes.length, at);
    return;
  }
  for (let from = 0; from < bytes.length; from += SECTOR - ((at + from) % SECTOR)) {
    const length = Math.min(SECTOR - ((at + from) % SECTOR), bytes.length - from);
    if (share > 0 && rng.chance(share)) writeSync(file, bytes, from, length, at + from);
  }
}
