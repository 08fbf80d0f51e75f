import { ownSequence } from "../../acl/acl-service.ts";
import type { AclBuild, AclMade, ComposeOptions } from "../../acl/compose.ts";
import { bytesToHex } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createRateLimitedLog } from "../../base/rate-limited-log.ts";
import { sha256 } from "../../crypto/hash.ts";
import { SvcError, svcError } from "../../protocol/errors.ts";
import type { Space } from "../../space/space.ts";
import { sequencePending, takeEachRecord } from "../acl-exchange.ts";
import { type Taken, takeIn } from "../intake.ts";
import { ageWaiting } from "../patience.ts";
import { NETWORK_PEER, type ProgressBook } from "../progress.ts";
import type { Transport } from "../transport.ts";
import type { Channel, ChannelPort } from "./channel.ts";
import { findAcl } from "./find-acl.ts";
import {
  cursorOf,
  hasMissed,
  isToBeReadAgain,
  putCursor,
  putLeftOut,
  putRefilling,
  readFromStart,
} from "./log-notes.ts";
import type { NetworkStore } from "./network-store.ts";
import { confirmTaken, hasOutgoing, outgoingOf } from "./outgoing-changes.ts";

/** What others wrote and published themselves a moment ago need not be published again from here. */
const OTHERS_FIRST_MS = 10_000;
const ASK_LEADER_MS = 5 * 60_000;
const FLUSH_WAIT_MS = 20_000;
const ACL_ATTEMPTS = 16;
const FIND_MS = 10_000;
const FIND_STEP_MS = 20;
const ADMISSION_POLL_MS = 300;
/** Between a space's end in its row and the word of it. */
const ENDING_MS = 5_000;

export interface NetworkSyncDeps {
  readonly store: NetworkStore;
  readonly book: ProgressBook;
  readonly clock: Clock;
  readonly log: Log;
  /** The account's own space, or an active one, opened; undefined for anything else. */
  open(spaceId: string): Promise<Space | undefined>;
  /** What a space's channel is found and opened by; undefined while it is not known here. */
  secretOf(space: Space): Uint8Array | undefined;
  /** What is shown of the space's channel may have changed, and nothing else. */
  stateChanged(spaceId: SpaceId): void;
  /** Secret of the invite by which this account joins the space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
  touch(spaceId: SpaceId): void;
  /** The progress of a space says something else now. */
  moved(): void;
  holding<T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T>;
}

interface Room {
  /** Aborted when the space has ended, or is read anew: nothing is waited for then. */
  readonly ended: AbortController;
  /** Some of what the log holds of members had no room here. */
  leftOut: boolean;
  readonly channel: Channel;
  /** Settled and made anew whenever the channel's state may have changed. */
  changed: PromiseWithResolvers<void>;
  /** Why the channel failed when it was heard of last; empty while it does not. */
  fault: string;
  /** Changes of others up to this number were here at `sinceMs`. */
  othersUpto: number;
  othersSinceMs: number;
  /** Changes a message had lately, to tell how many are missing by the number of messages. */
  perMessage: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** Rounds with the network: each space is a channel that is followed and, for what it lacks, filled from here. */
export function createNetworkSync(deps: NetworkSyncDeps): Transport {
  const { store, book, clock, log } = deps;
  const rooms = new Map<SpaceId, Room>();
  const rateLimited = createRateLimitedLog(log);
  /** Copies that have ended: a space that comes anew has a database of its own, of which their cursors say nothing. */
  const endedCopies = new WeakSet<Space>();
  /** Of each room the copy of its space that is open, or was last. */
  const copies = new Map<SpaceId, Space>();
  let closed = false;

  /** For a room's channel. What ended is not opened again: whoever asks waits until it is told so, and goes quietly. */
  const withSpace = <T>(spaceId: SpaceId, ended: AbortSignal, work: (space: Space) => Promise<T>): Promise<T> =>
    deps.holding(spaceId, async () => {
      const space = ended.aborted ? undefined : await deps.open(spaceId);
      if (space && !ended.aborted) return work(space);
      await Promise.race([aborted(ended), Bun.sleep(ENDING_MS)]);
      throw svcError("space.not_found", { spaceId });
    });

  /** Up to which number what others wrote has been here for a while without coming back from the network. */
  const othersUpto = (room: Room | undefined, newestNo: number): number => {
    if (!room) return 0;
    const now = clock.nowMs();
    const due = now - room.othersSinceMs >= OTHERS_FIRST_MS;
    const ready = due ? room.othersUpto : 0;
    if (due && newestNo > room.othersUpto) {
      room.othersUpto = newestNo;
      room.othersSinceMs = now;
    }
    room.timer ??= setTimeout(() => {
      room.timer = undefined;
      if (!closed) room.channel.wake();
    }, OTHERS_FIRST_MS);
    return ready;
  };

  /** Nothing of a space's content is taken in before this account is a member: it could not be opened. */
  const untilAdmitted = async (spaceId: SpaceId, ended: AbortSignal): Promise<void> => {
    while (await withSpace(spaceId, ended, async (space) => space.role() === "none")) {
      await Promise.race([aborted(ended), Bun.sleep(ADMISSION_POLL_MS)]);
      if (closed || ended.aborted) throw svcError("server.unavailable");
    }
  };

  /** Reads the ACL log to its tail; that of a space one is no member of yet is all there is to read. */
  const readAcl = async ({ channel, ended }: Room): Promise<void> => {
    const deadline = performance.now() + FIND_MS;
    while (!channel.state().acl.atTail) {
      if (closed || ended.signal.aborted || performance.now() > deadline) throw svcError("network.unavailable");
      await Bun.sleep(FIND_STEP_MS);
    }
  };

  const portOf = (spaceId: SpaceId, ended: AbortSignal): ChannelPort => ({
    outgoing: (limits) =>
      withSpace(spaceId, ended, (space) =>
        outgoingOf(space, limits, (newestNo) => othersUpto(rooms.get(spaceId), newestNo)),
      ),
    deliverItems: async (items, cursor, messages) => {
      await untilAdmitted(spaceId, ended);
      await withSpace(spaceId, ended, async (space) => {
        const { engine } = space;
        const taken = await takeIn(
          space,
          items.map(({ bytes }) => new Uint8Array(bytes)),
        );
        const progress = book.peer(spaceId, NETWORK_PEER);
        progress.fresh += taken.fresh;
        progress.changed += taken.changed;
        if (taken.reason) refusedOnce(spaceId, taken.reason);
        const room = rooms.get(spaceId);
        if (room && messages > 0) room.perMessage = items.length / messages;
        deps.moved();
        await engine.write(() => {
          noteLeftOut(space, taken);
          confirmTaken(space, taken);
          putCursor(space, "items", cursor);
        });
        if (taken.foreignOwn) {
          book.of(spaceId).writersReplaced++;
          log.warn(
            "sync: this device's writer was used elsewhere too: it is a copy or was put back; it writes on as another",
            { spaceId, peerId: NETWORK_PEER },
          );
          await engine.mintWriter();
        }
        if (taken.parked > 0) await sequencePending(space);
        deps.touch(spaceId);
      });
    },
    resetItems: (cursor) =>
      withSpace(spaceId, ended, async (space) => {
        const { engine } = space;
        log.warn("sync: the network's store lost something or is another one; it is filled again from here", {
          spaceId,
        });
        await engine.write(() => {
          engine.store.sync.forget("network");
          putRefilling(space, true);
          putCursor(space, "items", cursor);
        });
        book.of(spaceId).networkResets++;
        deps.touch(spaceId);
      }),
    deliverAcl: (records, cursor) =>
      withSpace(spaceId, ended, async (space) => {
        // Whoever holds the secret can put anything here: what follows it is judged by itself.
        const fault = await takeEachRecord(
          space,
          records.map(({ bytes }) => new Uint8Array(bytes)),
        );
        if (fault) refusedOnce(spaceId, fault);
        await space.engine.write(() => {
          for (const { bytes } of records) space.engine.store.sync.noteRecord("network", sha256(bytes));
          putCursor(space, "acl", cursor);
        });
        await sequencePending(space);
        deps.touch(spaceId);
      }),
    resetAcl: (cursor) =>
      withSpace(spaceId, ended, async (space) => {
        await space.engine.write(() => {
          const { sync } = space.engine.store;
          // The record that was read last is not there any more: whoever comes anew is shown an older chain, or another one.
          const lost = space.acl.records().findLast(({ id }) => sync.hasRecord("network", id));
          if (lost) space.acl.alarms.raise({ kind: "rolled_back", record: bytesToHex(lost.id) });
          sync.forgetRecords("network");
          putCursor(space, "acl", cursor);
        });
        deps.touch(spaceId);
      }),
    changed: () => {
      const room = rooms.get(spaceId);
      if (!room || closed) return;
      const state = room.channel.state();
      const progress = book.peer(spaceId, NETWORK_PEER);
      if (state.junk > 0) refusedOnce(spaceId, "messages that are not sealed as the space's are");
      progress.missing = !state.atTail || state.pending > 0 || room.leftOut;
      const fault = state.phase === "failing" ? (state.error?.message ?? "the network fails") : "";
      // Why a round failed stands until the next: that the logs are read again says nothing of it.
      if (fault !== "" || progress.lastError === room.fault) progress.lastError = fault;
      room.fault = fault;
      progress.behind = Math.round(state.items.pending * room.perMessage);
      deps.moved();
      const { resolve } = room.changed;
      room.changed = Promise.withResolvers();
      resolve();
      deps.stateChanged(spaceId);
    },
  });

  const roomOf = (space: Space): Room | undefined => {
    const known = rooms.get(space.id);
    if (known && !endedCopies.has(space)) copies.set(space.id, space);
    if (known || closed || endedCopies.has(space) || space.engine.closing()) return known;
    const transportSecret = deps.secretOf(space);
    if (!transportSecret) return undefined;
    const ended = new AbortController();
    const room: Room = {
      ended,
      leftOut: hasMissed(space),
      channel: store.openChannel({
        transportSecret,
        itemsCursor: cursorOf(space, "items"),
        aclCursor: cursorOf(space, "acl"),
        port: portOf(space.id, ended.signal),
      }),
      changed: Promise.withResolvers(),
      fault: "",
      othersUpto: 0,
      othersSinceMs: 0,
      perMessage: 1,
      timer: undefined,
    };
    rooms.set(space.id, room);
    copies.set(space.id, space);
    return room;
  };

  /** Some of what was read had no room: it is read again once there is. Inside a write of the space's engine. */
  const noteLeftOut = (space: Space, { refused, strange }: Taken): void => {
    const room = rooms.get(space.id);
    const ofMembers = refused > 0 && room !== undefined;
    if (refused + strange > 0) putLeftOut(space, ofMembers);
    if (ofMembers) room.leftOut = true;
  };

  const forget = async (spaceId: SpaceId): Promise<void> => {
    const room = rooms.get(spaceId);
    rooms.delete(spaceId);
    room?.ended.abort();
    room?.changed.resolve();
    clearTimeout(room?.timer);
    await room?.channel[Symbol.asyncDispose]();
  };

  /** Told once of each space: anybody who knows its name on the network can put anything there. */
  const refusedOnce = (spaceId: SpaceId, reason: string): void =>
    rateLimited.warn(spaceId, "sync: what the network held was refused", { spaceId, reason });

  /**
   * Puts the records of rights that the network lacks behind those it has, in the order of the chain. Then those of branches
   * that lost: an owner's device that never met them gives them a place, since changes may name them.
   */
  const publishAcl = async (space: Space, channel: Channel): Promise<void> => {
    const { sync } = space.engine.store;
    for (let attempt = 0; attempt < ACL_ATTEMPTS; attempt++) {
      const lost = space.acl.units.list().flatMap(({ unit }) => (unit.kind === "acl" ? unit : []));
      const next = [...space.engine.store.aclRecords(), ...lost].find(({ id }) => !sync.hasRecord("network", id));
      if (!next) return;
      await channel.appendAcl(next.bytes);
    }
  };

  /**
   * What this account could only propose while the network was away takes effect now, behind the last record that
   * everybody sees. One that somebody else's record made impossible meanwhile is forgotten.
   */
  const publishProposals = async (space: Space): Promise<void> => {
    for (const unit of await space.aclService.ownProposals()) {
      try {
        const inviteSeed = deps.inviteSeedOf(space.id);
        await appendAcl(space, ownSequence(unit), inviteSeed ? { inviteSeed } : {});
      } catch (error) {
        if (!(error instanceof SvcError) || error.code === "network.unavailable") throw error;
        log.warn("sync: a proposal could not take effect on the network", { err: error, spaceId: space.id });
      }
    }
  };

  const appendAcl = async (space: Space, build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> => {
    const room = roomOf(space);
    if (!room) throw svcError("network.unavailable");
    for (let attempt = 0; attempt < ACL_ATTEMPTS; attempt++) {
      await readAcl(room);
      if (space.role() !== "none") await publishAcl(space, room.channel);
      const made = space.aclService.draft(build, options);
      if (!made) return undefined;
      if ((await room.channel.appendAcl(made.bytes)).outcome === "conflict") continue;
      if (!space.acl.at(made.id)) await space.aclService.take([made.bytes]);
      if (space.acl.at(made.id)) return made;
    }
    throw svcError("network.unavailable", undefined, "Others were faster every time; retry");
  };

  /** Waits until what this device wrote has come back from the network, or does not go there. */
  const flush = async (space: Space, room: Room): Promise<void> => {
    const deadline = performance.now() + FLUSH_WAIT_MS;
    while (!closed && !room.ended.signal.aborted && performance.now() < deadline && hasOutgoing(space)) {
      const { phase } = room.channel.state();
      if (phase === "failing" || phase === "offline") return;
      room.channel.wake();
      await Promise.race([room.changed.promise, Bun.sleep(250)]);
    }
  };

  /**
   * A live channel is told of what is appended, and of a store that is not what it was; its leader is asked all the same
   * when it was not for a while.
   */
  const rests = async (spaceId: SpaceId): Promise<boolean> => {
    const channel = rooms.get(spaceId)?.channel;
    if (channel?.state().phase !== "live") return false;
    const { checkedAtMs } = channel.state();
    if (checkedAtMs === undefined || clock.nowMs() - checkedAtMs > ASK_LEADER_MS) {
      try {
        await channel.round();
      } catch {
        return false; // a full round says what is wrong
      }
    }
    const { phase, atTail, pending } = channel.state();
    if (phase !== "live" || !atTail || pending > 0) return false;
    book.peer(spaceId, NETWORK_PEER).lastSyncAtMs = channel.state().checkedAtMs;
    return true;
  };

  const isOnline = (): boolean => store.state().phase === "online";

  return {
    names: (spaceId) => {
      const phase = isOnline() ? rooms.get(spaceId)?.channel.state().phase : undefined;
      return phase === undefined || phase === "offline" ? [] : [NETWORK_PEER];
    },
    fault: (spaceId) => {
      const state = store.state();
      if (state.phase === "refused") return state.reason ?? "the network refuses this account";
      const channel = isOnline() ? rooms.get(spaceId)?.channel.state() : undefined;
      return channel?.phase === "failing" ? (channel.error?.message ?? "the network fails") : undefined;
    },
    async round(space) {
      if (isToBeReadAgain(space)) {
        await forget(space.id);
        await readFromStart(space);
      }
      const room = roomOf(space);
      if (!room || !isOnline()) return;
      const progress = book.peer(space.id, NETWORK_PEER);
      try {
        await readAcl(room);
        if (space.acl.units.list().length > 0) await publishProposals(space);
        if (space.role() === "none") return;
        await room.channel.round();
        await publishAcl(space, room.channel);
        await flush(space, room);
        const { phase, atTail } = room.channel.state();
        if (phase === "failing" || phase === "offline") return; // its own state says why
        progress.missing = !atTail || room.leftOut;
        progress.lastError = "";
        progress.lastSyncAtMs = clock.nowMs();
        await ageWaiting(space);
      } catch (error) {
        if (closed || room.ended.signal.aborted || !isOnline() || space.engine.closing()) return;
        progress.lastError = error instanceof Error ? error.message : String(error);
        log.warn("sync: a round with the network failed", { err: error, spaceId: space.id });
      }
    },
    async resting(marks) {
      if (!isOnline()) return new Set(marks.keys());
      const found = new Set<SpaceId>();
      for (const [spaceId, mark] of marks) if (mark && (await rests(spaceId))) found.add(spaceId);
      return found;
    },
    appendAcl,
    findChain: async ({ transportSecret }) => (isOnline() ? findAcl(store, transportSecret, () => closed) : undefined),
    changed: (space) => rooms.get(space.id)?.channel.wake(),
    forget: (spaceId) => {
      const copy = copies.get(spaceId);
      if (copy) endedCopies.add(copy);
      copies.delete(spaceId);
      return forget(spaceId);
    },
    close: async () => {
      closed = true;
      for (const room of rooms.values()) {
        room.ended.abort();
        clearTimeout(room.timer);
        room.changed.resolve();
      }
      await Promise.all([...rooms.values()].map((room) => room.channel[Symbol.asyncDispose]()));
      await store[Symbol.asyncDispose]();
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
