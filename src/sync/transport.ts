import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../base/timers.ts";
import type { P2pDebug, P2pState } from "../protocol/sync.ts";
import type { SpacePlace } from "../space/port/places.ts";
import type { AclBuild, AclMade, ComposeOptions, Replica } from "../space/port/replica.ts";
import type { ProgressBook } from "./progress.ts";

/** What sync lends to every transport. */
export interface TransportHost {
  readonly book: ProgressBook;
  readonly clock: Clock;
  readonly log: Log;
  readonly timers: Timers;
  /** A space that is held here and active, or the account's own, opened; undefined for anything else. */
  open(spaceId: string): Promise<Replica | undefined>;
  /** Keeps a space open while `work` runs. */
  hold<T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T>;
  /** Something happened to the space. */
  notifyChanged(spaceId: SpaceId): void;
  /** The progress of a space says something else now. */
  notifyProgress(): void;
}

/** Events over a transport: they go to whoever listens now, and nothing is kept. */
export interface EventTransport {
  publish(replica: Replica, topic: string, payload: Uint8Array): void;
  /** Replaces the topic patterns wanted from a space; what comes in is handed to the relay. */
  watch(replica: Replica, patterns: readonly string[], take: (payload: Uint8Array) => void): void;
  /** A space ended. */
  forget(spaceId: SpaceId): void;
}

/** The LAN, as far as its state is shown. */
export interface LanView {
  state(): P2pState;
  debug(): P2pDebug;
}

/** A transport: a way to other replicas, over the LAN or the network. */
export interface Transport {
  /** Names, as progress knows them, of who keeps the space and is reached now. */
  names(spaceId: SpaceId): readonly string[];
  /** Why it does not serve although it can be reached; undefined otherwise. */
  fault(spaceId: SpaceId): string | undefined;
  /**
   * One round in both directions with everybody who is reached: fetches what they have, and gives them what is here.
   * Failures are entered into the progress, not thrown.
   */
  round(replica: Replica): Promise<void>;
  /**
   * Those of these spaces for which a round would bring nothing: nobody who is reached keeps the space, or everybody who
   * does is surely at the given mark (undefined: the space was not found synced since it changed). Opens no space.
   */
  resting(marks: ReadonlyMap<SpaceId, Uint8Array | undefined>): Promise<ReadonlySet<SpaceId>>;
  /**
   * Appends a record of this account to the log that everybody sees; the record is built anew as often as somebody else is
   * faster. Undefined when nothing had to be done. Only for a transport that keeps the order of the log. Errors:
   * network.unavailable.
   */
  appendAcl?(replica: Replica, build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined>;
  /**
   * Looks for a space that is not held here, by what an invite or guest token says: the records of its ACL log,
   * from the root on, or undefined when nobody who is reached has it.
   */
  findAclLog(place: SpacePlace): Promise<Uint8Array[] | undefined>;
  /** Makes the places where spaces are kept; only for a transport that keeps them itself. Errors: network.unavailable. */
  init?(replicas: number | undefined): Promise<{ created: string[]; existing: string[] }>;
  /** Events, if they go over it too. */
  readonly events?: EventTransport;
  /** What is shown of it, if it is the LAN. */
  readonly lan?: LanView;
  /** Something was written to the space, here or by others. */
  changed(replica: Replica): void;
  /** The space ended, or is closed: nothing of it is held any longer. */
  forget(spaceId: SpaceId): Promise<void>;
  close(): Promise<void>;
}
