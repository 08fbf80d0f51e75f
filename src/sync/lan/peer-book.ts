import type { PeerId } from "../../base/ids.ts";
import type { Sighting } from "./discovery.ts";

/**
 * Which peers discovery has seen, and when to dial them next. Bounded: what a flood of announcements brings is forgotten
 * first.
 */
export interface PeerBook {
  seen(sighting: Sighting, ownInstance: string): void;
  gone(instance: string): void;
  /** Instances to dial now: due, and not known to be a peer that is connected. */
  due(isConnected: (peerId: PeerId) => boolean): string[];
  /** Marks a dial as begun; undefined when it is under way or the instance is gone. */
  begin(instance: string): Sighting | undefined;
  reached(instance: string, peerId: PeerId): void;
  /** `strange`: it answered, and shares nothing with us. */
  failed(instance: string, how: "unreachable" | "strange"): void;
  /** A link ended: its peer is worth dialling again, at once if the link lasted. */
  lost(peerId: PeerId): void;
  retryStrangers(): void;
  knownPeers(): PeerId[];
}

interface Entry {
  sighting: Sighting;
  /** How long the other side is given to dial first. */
  readonly pauseMs: number;
  seenAtMs: number;
  dueAtMs: number;
  reachedAtMs: number;
  failures: number;
  strange: boolean;
  dialling: boolean;
  peerId?: PeerId;
}

const ENTRIES_MAX = 256;
/** Announcements come every minute. */
const FORGET_AFTER_MS = 300_000;
/** The instance with the higher name lets the other dial first, so that they rarely dial each other at once. */
const POLITE_MS = 1500;
const UNREACHABLE_FIRST_MS = 1000;
const UNREACHABLE_MAX_MS = 60_000;
/** A link that ends sooner than this may end for a lasting reason, such as two devices that show one device key. */
const HASTY_MS = 2000;
const HASTY_PAUSE_MS = 300;
const STRANGE_FIRST_MS = 30_000;
const STRANGE_MAX_MS = 600_000;

export function createPeerBook(nowMs: () => number): PeerBook {
  const entries = new Map<string, Entry>();

  const makeRoom = () => {
    if (entries.size < ENTRIES_MAX) return;
    // The oldest entry that never became a peer is dropped, so a flood pushes itself out.
    let oldest: [string, Entry] | undefined;
    for (const entry of entries) {
      if (entry[1].dialling || entry[1].peerId !== undefined) continue;
      if (!oldest || entry[1].seenAtMs < oldest[1].seenAtMs) oldest = entry;
    }
    entries.delete(oldest?.[0] ?? entries.keys().next().value ?? "");
  };
  return {
    seen: (sighting, ownInstance) => {
      const known = entries.get(sighting.instance);
      const now = nowMs();
      if (!known) {
        makeRoom();
        const pauseMs = sighting.instance < ownInstance ? POLITE_MS : 0;
        entries.set(sighting.instance, {
          sighting,
          pauseMs,
          seenAtMs: now,
          dueAtMs: now + pauseMs,
          reachedAtMs: 0,
          failures: 0,
          strange: false,
          dialling: false,
        });
        return;
      }
      known.seenAtMs = now;
      if (known.failures > 0 && !known.strange) known.sighting = sighting; // perhaps reachable there
    },
    gone: (instance) => {
      if (!entries.get(instance)?.dialling) entries.delete(instance);
    },
    due: (isConnected) => {
      const now = nowMs();
      const due: string[] = [];
      for (const [instance, entry] of entries) {
        if (entry.peerId !== undefined && isConnected(entry.peerId)) continue;
        if (now - entry.seenAtMs > FORGET_AFTER_MS && !entry.dialling) entries.delete(instance);
        else if (!entry.dialling && entry.dueAtMs <= now) due.push(instance);
      }
      return due;
    },
    begin: (instance) => {
      const entry = entries.get(instance);
      if (!entry || entry.dialling) return undefined;
      entry.dialling = true;
      return entry.sighting;
    },
    reached: (instance, peerId) => {
      const entry = entries.get(instance);
      if (!entry) return;
      Object.assign(entry, {
        dialling: false,
        failures: 0,
        strange: false,
        peerId,
        reachedAtMs: nowMs(),
        dueAtMs: nowMs() + UNREACHABLE_FIRST_MS,
      });
    },
    failed: (instance, how) => {
      const entry = entries.get(instance);
      if (!entry) return;
      entry.dialling = false;
      entry.strange = how === "strange";
      const [first, max] = entry.strange
        ? [STRANGE_FIRST_MS, STRANGE_MAX_MS]
        : [UNREACHABLE_FIRST_MS, UNREACHABLE_MAX_MS];
      entry.dueAtMs = nowMs() + Math.min(max, first * 2 ** entry.failures);
      entry.failures++;
    },
    lost: (peerId) => {
      const now = nowMs();
      for (const entry of entries.values()) {
        if (entry.peerId !== peerId) continue;
        const hasty = now - entry.reachedAtMs < HASTY_MS;
        entry.dueAtMs = now + Math.max(entry.pauseMs, hasty ? HASTY_PAUSE_MS : 0);
        entry.failures = 0;
      }
    },
    retryStrangers: () => {
      for (const entry of entries.values()) {
        if (!entry.strange) continue;
        entry.strange = false;
        entry.failures = 0;
        entry.dueAtMs = nowMs();
      }
    },
    knownPeers: () => [
      ...new Set([...entries.values()].flatMap((entry) => (entry.peerId === undefined ? [] : [entry.peerId]))),
    ],
  };
}
