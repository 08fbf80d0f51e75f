import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { RateLimitedLog } from "../../base/rate-limited-log.ts";
import { sha256 } from "../../crypto/hash.ts";
import { svcError } from "../../protocol/errors.ts";
import { refusalText } from "../../protocol/refusals.ts";
import type { Place } from "../../space/port/places.ts";
import type { Replica, ReplicaWrite, Taken } from "../../space/port/replica.ts";
import { NETWORK_PEER, type ProgressBook } from "../progress.ts";
import type { TransportHost } from "../transport.ts";
import { secretInLink } from "./acl-append.ts";
import type { ChannelPort } from "./channel.ts";
import { hasLost, notePlace, type PlaceEnd, putLeftOut, putLost, putRefilling } from "./log-notes.ts";
import { outgoingOf } from "./outgoing-changes.ts";
import { notifyChanged, type SpaceChannel } from "./space-channels.ts";

/** Changes that others wrote a moment ago, and publish themselves, need not be published from here. */
const OTHERS_FIRST_MS = 10_000;
const ADMISSION_POLL_MS = 300;
/** Time between a space's end in its row and the event that reports it. */
const ENDING_MS = 5_000;

export interface SpacePortDeps extends TransportHost {
  readonly rateLimited: RateLimitedLog;
  /** The places of a space, oldest first. */
  placesOf(replica: Replica): Place[];
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
  const { book, log, timers } = deps;

  /** A space that ended is not opened again: a caller waits until the event of its end comes, and then ends quietly. */
  const withSpace = <T>(work: (replica: Replica) => Promise<T>): Promise<T> =>
    deps.hold(spaceId, async () => {
      const replica = ended.aborted ? undefined : await deps.open(spaceId);
      if (replica && !ended.aborted) return work(replica);
      await Promise.race([aborted(ended), timers.sleep(ENDING_MS)]);
      throw svcError("space.not_found", { spaceId });
    });

  /** Nothing of a space's content is taken in before this account is a member, since it could not be opened. */
  const untilAdmitted = async (): Promise<void> => {
    while (await withSpace(async (replica) => replica.role() === "none")) {
      await Promise.race([aborted(ended), timers.sleep(ADMISSION_POLL_MS)]);
      if (ended.aborted) throw svcError("server.unavailable");
    }
  };

  /** Logged once for each space: anybody who knows its name on the network can put anything there. */
  const refusedOnce = (reason: string): void =>
    deps.rateLimited.warn(spaceId, "sync: what the network held was refused", { spaceId, reason });

  /** Some of what was read had no room here; it is read again once there is room. */
  const noteLeftOut = (write: ReplicaWrite, replica: Replica, taken: Taken): void => {
    if (taken.refused + taken.strange > 0) putLeftOut(write, replica, taken);
    if (taken.refused > 0) own().leftOut = true;
  };

  const replaceWriter = async (replica: Replica): Promise<void> => {
    book.of(spaceId).writersReplaced++;
    log.warn(
      "sync: this device's writer was used elsewhere too: it is a copy or was put back; it writes on as another",
      { spaceId, peerId: NETWORK_PEER },
    );
    await replica.replaceWriter();
  };

  return {
    lastSeq: () => own().end?.seq,

    outgoing: (limits) =>
      withSpace(async (replica) => {
        const isPresent = replica.presentKeyId() === own().keyId && !hasLost(replica);
        if (!isPresent || replica.role() === "none") return { items: [], exact: false };
        return outgoingOf(replica, limits, (newestNo) => othersUpto(own(), newestNo, deps));
      }),

    async deliverItems(items, cursor, messages) {
      await untilAdmitted();
      await withSpace(async (replica) => {
        const taken = await replica.take(items.map(({ bytes }) => new Uint8Array(bytes)));
        const progress = book.peer(spaceId, NETWORK_PEER);
        progress.fresh += taken.fresh;
        progress.changed += taken.changed;
        if (taken.refusal) refusedOnce(refusalText(taken.refusal));
        if (messages > 0) own().perMessage = items.length / messages;
        deps.notifyProgress();
        await replica.write((write) => {
          noteLeftOut(write, replica, taken);
          write.published(taken);
          notePlace(write, replica, own().keyId, { items: cursor });
        });
        if (taken.foreignOwn) await replaceWriter(replica);
        if (taken.parked > 0) await replica.acl.sequencePending();
        deps.notifyChanged(spaceId);
      });
    },

    resetItems: (cursor) =>
      withSpace(async (replica) => {
        log.warn("sync: the network's store lost something or is another one; it is filled again from here", {
          spaceId,
        });
        await replica.write((write) => {
          write.forgetPublished();
          putRefilling(write, true);
          notePlace(write, replica, own().keyId, { items: cursor });
          putLost(write, replica);
        });
        book.of(spaceId).networkResets++;
        deps.notifyChanged(spaceId);
      }),

    deliverAcl: (delivered, cursor) =>
      withSpace(async (replica) => {
        const links = delivered.flatMap(({ bytes }) => secretInLink(bytes) ?? []);
        const records = delivered.filter(({ bytes }) => !secretInLink(bytes));
        // Anybody who holds the secret can put anything here, so each record after it is judged by itself.
        const fault = await replica.acl.takeEach(records.map(({ bytes }) => new Uint8Array(bytes)));
        if (fault) refusedOnce(refusalText(fault));
        const { keyId } = own();
        const places = deps.placesOf(replica);
        const place = places.find((one) => one.keyId === keyId);
        if (replica.role() !== "none") own().end ??= place && endIn(place, records);
        await replica.write((write) => {
          // In the place of a branch that lost, they are lacking in their own.
          if (place) write.recordsPublished(records.map(({ bytes }) => sha256(bytes)));
          const linked = isLinked(places, keyId, links) ? { linked: true } : {};
          notePlace(write, replica, keyId, { acl: cursor, end: own().end, ...linked });
        });
        if (own().end) own().isPast = true;
        notifyChanged(own());
        await replica.acl.sequencePending();
        deps.notifyChanged(spaceId);
      }),

    resetAcl: (cursor) =>
      withSpace(async (replica) => {
        await replica.write((write) => {
          write.forgetRecordsPublished();
          notePlace(write, replica, own().keyId, { acl: cursor, end: undefined, linked: false });
          putLost(write, replica);
        });
        own().end = undefined;
        deps.notifyChanged(spaceId);
      }),

    changed() {
      if (ended.aborted) return;
      const channel = own();
      if (channel.channel.state().junk > 0) refusedOnce("messages that are not sealed as the space's are");
      noteState(book, channel);
      deps.notifyProgress();
      notifyChanged(channel);
      deps.notifyStatus(spaceId);
    },
  };
}

/** Where among these records a place ends, if it does. */
function endIn(place: Place, records: readonly { bytes: Uint8Array; seq: number }[]): PlaceEnd | undefined {
  const record = place.ending;
  const found = records.find(({ bytes }) => bytesToHex(sha256(bytes)) === record);
  return record !== undefined && found ? { record, seq: found.seq } : undefined;
}

/** Whether one of the links leads from a place to the one before. */
function isLinked(places: readonly Place[], keyId: string, links: readonly Uint8Array[]): boolean {
  const before = places[places.findIndex((place) => place.keyId === keyId) - 1]?.secret;
  return before !== undefined && links.some((link) => equalBytes(link, before));
}

/** Enters what the channel says of itself into the progress. */
function noteState(book: ProgressBook, own: SpaceChannel): void {
  const state = own.channel.state();
  const progress = book.peer(own.spaceId, NETWORK_PEER);
  progress.missing = own.isPast || !state.atTail || state.pending > 0 || own.leftOut;
  const fault = state.phase === "failing" ? (state.error?.message ?? "the network fails") : "";
  // The reason why a round failed stands until the next round; reading the logs again says nothing of it.
  if (fault !== "" || progress.lastError === own.fault) progress.lastError = fault;
  own.fault = fault;
  progress.behind = Math.round(state.items.pending * own.perMessage);
}

/** Up to which number changes of others have been here for a while without coming back from the network. */
function othersUpto(own: SpaceChannel, newestNo: number, { clock, timers }: TransportHost): number {
  const nowMs = clock.nowMs();
  const due = nowMs - own.othersSinceMs >= OTHERS_FIRST_MS;
  const ready = due ? own.othersUpto : 0;
  if (due && newestNo > own.othersUpto) {
    own.othersUpto = newestNo;
    own.othersSinceMs = nowMs;
  }
  if (own.ended.signal.aborted) return ready;
  own.endOthersTimer ??= timers.after(OTHERS_FIRST_MS, () => {
    own.endOthersTimer = undefined;
    own.channel.wake();
  });
  return ready;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
