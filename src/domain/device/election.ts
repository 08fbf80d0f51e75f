import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";

/** A live row of the `devices` dataset, as far as the election reads it. The values are whatever some device wrote. */
export interface DeviceRow {
  /** Peer id. */
  readonly id: string;
  readonly apps?: Json;
  readonly activeClaims?: Json;
}

/** One device's wish to run an app: the higher `seq` wins. */
export interface Claim {
  /** Whole, 1 to 2^53. */
  readonly seq: number;
  /** Unix seconds. */
  readonly at: number;
}

const MAX_SEQ = 2 ** 53;

/**
 * The device that runs each app (DEV-2): among the live rows that carry the app and hold a claim for it, the one with
 * the highest `seq`, then the highest `at`, then the largest peer id. A malformed claim reads as absent. Apps that nobody
 * has claimed are not in the map. Every reader of the same rows comes to the same answer.
 */
export function electActive(rows: Iterable<DeviceRow>): Map<string, string> {
  const best = new Map<string, Claim & { id: string }>();
  for (const { id, apps, activeClaims } of rows) {
    if (!isJsonObject(apps) || !isJsonObject(activeClaims)) continue;
    for (const [slug, value] of Object.entries(activeClaims)) {
      const claim = readClaim(value);
      // A claim ends with its app: who uninstalls the app forfeits it.
      if (!claim || (ownValue(apps, slug) ?? null) === null) continue;
      const rival = best.get(slug);
      if (!rival || wins({ ...claim, id }, rival)) best.set(slug, { ...claim, id });
    }
  }
  return new Map([...best].map(([slug, { id }]) => [slug, id]));
}

/** The claim that `POST /v1/devices/activate` writes: one above every claim for the app that is visible on a live row. */
export function nextClaim(rows: Iterable<DeviceRow>, slug: string, nowMs: number): Claim {
  let highest = 0;
  for (const { activeClaims } of rows) {
    const claim = isJsonObject(activeClaims) ? readClaim(ownValue(activeClaims, slug)) : undefined;
    if (claim) highest = Math.max(highest, claim.seq);
  }
  // At the end of the numbers a claim can but tie; then the later one wins.
  return { seq: Math.min(MAX_SEQ, highest + 1), at: Math.floor(nowMs / 1000) };
}

/** A claim as some device wrote it, or undefined where it is malformed: that reads as absent. */
export function readClaim(value: Json | undefined): Claim | undefined {
  if (!isJsonObject(value)) return undefined;
  const { seq, at } = value as { seq?: Json; at?: Json };
  if (typeof seq !== "number" || !Number.isInteger(seq) || seq < 1 || seq > MAX_SEQ) return undefined;
  if (typeof at !== "number" || !Number.isFinite(at)) return undefined;
  return { seq, at };
}

function wins(one: Claim & { id: string }, other: Claim & { id: string }): boolean {
  if (one.seq !== other.seq) return one.seq > other.seq;
  if (one.at !== other.at) return one.at > other.at;
  return one.id > other.id;
}

function ownValue(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
