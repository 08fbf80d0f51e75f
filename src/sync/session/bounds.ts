import { REPLICA_BOUNDS } from "../../space/port/replica.ts";

/** The most that one message of a session holds, so that neither side has to hold much (SYNC-4). */
export const SYNC_BOUNDS = {
  /** Writers of a vector in one message: some 600 KB. */
  writers: 4_096,
  /** Parts of a vector that are named in one message: 512 KB. Those behind them are sent, the same or not. */
  parts: 16_384,
  /**
   * How many writers that differ at a peer are held while a session runs: some 100 MB. The next session goes on from there.
   */
  writersInAll: 1 << 18,
  /** Ids of forked writers' chains, in all of one message; older ids are sent again. */
  chainIds: 16_384,
  /** How many changes that were received but not stored are named to a peer. */
  held: 4_096,
  wants: 256,
  /** After so many requests by name that bring nothing the session stops; the next one goes on behind them. */
  idleWants: 16,
  aclRecords: REPLICA_BOUNDS.aclRecords,
  /** How much of an ACL log is taken in at once; of a longer log the beginning. */
  aclBytes: 64 << 20,
  /** The cost of each of its records besides the bytes. */
  aclRecordCost: 512,
  /** How long a peer may take over a whole ACL log. */
  aclMs: 120_000,
  /** Values in a message; each of them costs memory, however short it is. */
  values: 1 << 16,
  /** How often a peer may ask for ids of writers before it gives a frame. An honest one asks for all at once. */
  chainAsks: 8,
  /** A round ends after so many requests to a peer to fetch from here that left it with no more than before. */
  idleBacks: 4,
  /**
   * Requests of an account to fetch from it that brought nothing, for a space: so many at once, then one in ten seconds. Others
   * are answered without fetching.
   */
  idleRequests: 32,
  /** How many spaces a peer is asked about at once, whether it is at the same mark. */
  marks: 1_024,
  /** After so many frames in a row that bring nothing a session is begun anew from what is here by then. */
  idleFrames: 32,
  /**
   * Frames of a space that hold only changes refused for good, from all peers together: so many at once, then one a minute.
   */
  junkFrames: 32,
  /** A session ends after so many changes that cannot be kept. */
  junk: 1_000,
  /** How often a session that was cut short is begun anew in one round. */
  restarts: 8,
  /** How long a peer works for us on one request before it answers that there is more. */
  backMs: 10_000,
} as const;
