import { REPLICA_BOUNDS } from "../../space/replica.ts";

/** What one message of a session holds at most, so that neither side has to hold much. */
export const SYNC_BOUNDS = {
  /** Writers of a vector in one message: some 600 KB. */
  writers: 4_096,
  /** Writers of which a peer has something else, that are held while a session runs: some 100 MB. The next goes on. */
  writersInAll: 1 << 18,
  /** Ids of chains that are compared because their writers forked, in all of a message; older ones are sent again. */
  chainIds: 16_384,
  /** Changes received but not stored that a peer is told of. */
  held: 4_096,
  wants: 256,
  /** Requests for changes by name in one session that bring nothing: the next session goes on behind them. */
  idleWants: 16,
  aclRecords: REPLICA_BOUNDS.aclRecords,
  /** Of an ACL log that is taken in at once; of a longer one what comes first. */
  aclBytes: 64 << 20,
  /** What each of its records costs besides its bytes. */
  aclRecordCost: 512,
  /** How long a peer may take over a whole ACL log. */
  aclMs: 120_000,
  /** Values in a message, of which each costs memory however short it is. */
  values: 1 << 16,
  /** How often a peer may ask for ids of writers before it gives a frame. An honest one asks for all at once. */
  chainAsks: 8,
  /** Requests to a peer to fetch from here after which it has no more than before: then the round ends. */
  idleBacks: 4,
  /** Spaces that a peer is asked about at once, whether it is at the same. */
  marks: 1_024,
  /** Frames of a session that bring nothing, one after the other: then it is begun anew from what is here by now. */
  idleFrames: 32,
  /** Frames of a space that bring nothing but what is refused for good, from whomever: so many, then one a minute. */
  junkFrames: 32,
  /** Changes of a session that cannot be kept: then it ends. */
  junk: 1_000,
  /** How often a session that was cut short is begun anew in one round. */
  restarts: 8,
  /** How long a peer works for us on one request before it answers that there is more. */
  backMs: 10_000,
} as const;
