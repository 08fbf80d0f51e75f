import { bytesToHex } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { RateLimitedLog } from "../../base/rate-limited-log.ts";
import { sha256 } from "../../crypto/hash.ts";
import { svcError } from "../../protocol/errors.ts";
import type { Space } from "../../space/space.ts";
import { sequencePending, takeEachRecord } from "../acl-exchange.ts";
import { type Taken, takeIn } from "../intake.ts";
import { NETWORK_PEER, type ProgressBook } from "../progress.ts";
import type { TransportHost } from "../transport.ts";
import type { ChannelPort } from "./channel.ts";
import { putCursor, putLeftOut, putRefilling } from "./log-notes.ts";
import { confirmTaken, outgoingOf } from "./outgoing-changes.ts";
import type { SpaceChannel } from "./space-channels.ts";

/** What others wrote and published themselves a moment ago need not be published again from here. */
const OTHERS_FIRST_MS = 10_000;
const ADMISSION_POLL_MS = 300;
/** Between a space's end in its row and the word of it. */
const ENDING_MS = 5_000;

export interface SpacePortDeps extends TransportHost {
  readonly rateLimited: RateLimitedLog;
  /** What is shown of the space's channel may have changed, and nothing else. */
  notifyStatus(spaceId: SpaceId): void;
}

/** What a space lends to its channel: what goes out, and where what comes in is stored. */
export function createSpacePort(
  deps: SpacePortDeps,
  spaceId: SpaceId,
  ended: AbortSignal,
  own: () => SpaceChannel,
): ChannelPort {
  const { book, log } = deps;

  /** What ended is not opened again: whoever asks waits until it hears of that, and goes quietly. */
  const withSpace = <T>(work: (space: Space) => Promise<T>): Promise<T> =>
    deps.hold(spaceId, async () => {
      const space = ended.aborted ? undefined : await deps.open(spaceId);
      if (space && !ended.aborted) return work(space);
      await Promise.race([aborted(ended), Bun.sleep(ENDING_MS)]);
      throw svcError("space.not_found", { spaceId });
    });

  /** Nothing of a space's content is taken in before this account is a member: it could not be opened. */
  const untilAdmitted = async (): Promise<void> => {
    while (await withSpace(async (space) => space.role() === "none")) {
      await Promise.race([aborted(ended), Bun.sleep(ADMISSION_POLL_MS)]);
      if (ended.aborted) throw svcError("server.unavailable");
    }
  };

  /** Logged once of each space: anybody who knows its name on the network can put anything there. */
  const refusedOnce = (reason: string): void =>
    deps.rateLimited.warn(spaceId, "sync: what the network held was refused", { spaceId, reason });

  /** Some of what was read had no room: it is read again once there is. Inside a write of the space's engine. */
  const noteLeftOut = (space: Space, { refused, strange }: Taken): void => {
    if (refused + strange > 0) putLeftOut(space, refused > 0);
    if (refused > 0) own().leftOut = true;
  };

  const replaceWriter = async (space: Space): Promise<void> => {
    book.of(spaceId).writersReplaced++;
    log.warn(
      "sync: this device's writer was used elsewhere too: it is a copy or was put back; it writes on as another",
      { spaceId, peerId: NETWORK_PEER },
    );
    await space.engine.mintWriter();
  };

  return {
    outgoing: (limits) =>
      withSpace((space) => outgoingOf(space, limits, (newestNo) => othersUpto(own(), newestNo, deps.clock.nowMs()))),

    async deliverItems(items, cursor, messages) {
      await untilAdmitted();
      await withSpace(async (space) => {
        const taken = await takeIn(
          space,
          items.map(({ bytes }) => new Uint8Array(bytes)),
        );
        const progress = book.peer(spaceId, NETWORK_PEER);
        progress.fresh += taken.fresh;
        progress.changed += taken.changed;
        if (taken.reason) refusedOnce(taken.reason);
        if (messages > 0) own().perMessage = items.length / messages;
        deps.notifyProgress();
        await space.engine.write(() => {
          noteLeftOut(space, taken);
          confirmTaken(space, taken);
          putCursor(space, "items", cursor);
        });
        if (taken.foreignOwn) await replaceWriter(space);
        if (taken.parked > 0) await sequencePending(space);
        deps.notifyChanged(spaceId);
      });
    },

    resetItems: (cursor) =>
      withSpace(async (space) => {
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
        deps.notifyChanged(spaceId);
      }),

    deliverAcl: (records, cursor) =>
      withSpace(async (space) => {
        // Whoever holds the secret can put anything here: what follows it is judged by itself.
        const fault = await takeEachRecord(
          space,
          records.map(({ bytes }) => new Uint8Array(bytes)),
        );
        if (fault) refusedOnce(fault);
        await space.engine.write(() => {
          for (const { bytes } of records) space.engine.store.sync.noteRecord("network", sha256(bytes));
          putCursor(space, "acl", cursor);
        });
        await sequencePending(space);
        deps.notifyChanged(spaceId);
      }),

    resetAcl: (cursor) =>
      withSpace(async (space) => {
        await space.engine.write(() => {
          const { sync } = space.engine.store;
          // The record that was read last is not there any more: whoever comes anew is shown an older chain, or another one.
          const lost = space.acl.records().findLast(({ id }) => sync.hasRecord("network", id));
          if (lost) space.acl.alarms.raise({ kind: "rolled_back", record: bytesToHex(lost.id) });
          sync.forgetRecords("network");
          putCursor(space, "acl", cursor);
        });
        deps.notifyChanged(spaceId);
      }),

    changed() {
      if (ended.aborted) return;
      const channel = own();
      if (channel.channel.state().junk > 0) refusedOnce("messages that are not sealed as the space's are");
      noteState(book, channel);
      deps.notifyProgress();
      const { resolve } = channel.changed;
      channel.changed = Promise.withResolvers();
      resolve();
      deps.notifyStatus(spaceId);
    },
  };
}

/** Enters what the channel says of itself into the progress. */
function noteState(book: ProgressBook, own: SpaceChannel): void {
  const state = own.channel.state();
  const progress = book.peer(own.spaceId, NETWORK_PEER);
  progress.missing = !state.atTail || state.pending > 0 || own.leftOut;
  const fault = state.phase === "failing" ? (state.error?.message ?? "the network fails") : "";
  // Why a round failed stands until the next: that the logs are read again says nothing of it.
  if (fault !== "" || progress.lastError === own.fault) progress.lastError = fault;
  own.fault = fault;
  progress.behind = Math.round(state.items.pending * own.perMessage);
}

/** Up to which number what others wrote has been here for a while without coming back from the network. */
function othersUpto(own: SpaceChannel, newestNo: number, nowMs: number): number {
  const due = nowMs - own.othersSinceMs >= OTHERS_FIRST_MS;
  const ready = due ? own.othersUpto : 0;
  if (due && newestNo > own.othersUpto) {
    own.othersUpto = newestNo;
    own.othersSinceMs = nowMs;
  }
  if (own.ended.signal.aborted) return ready;
  own.othersTimer ??= setTimeout(() => {
    own.othersTimer = undefined;
    own.channel.wake();
  }, OTHERS_FIRST_MS);
  return ready;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
