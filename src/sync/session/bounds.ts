/** What one message of a session holds at most, so that neither side has to hold much. */
export const SYNC_BOUNDS = {
  frameBytes: 1 << 20,
  frameChanges: 500,
  /** Rows looked at for one frame. */
  scanned: 50_000,
  /** Ids of a writer's chain that are compared when it forked; older ones are sent again. */
  chainIds: 16_384,
  /** Changes received but not stored that a peer is told of. */
  held: 4_096,
  wants: 256,
  /** Of missing bodies so many times as many are asked for in one session. */
  bodyPages: 32,
  aclRecords: 500,
  /** Spaces that a peer is asked about at once, whether it is at the same. */
  marks: 1_024,
  /** Frames of a session that bring nothing, one after the other: then it is begun anew from what is here by now. */
  idleFrames: 32,
  /** Changes of a session that cannot be kept: then it ends. */
  junk: 1_000,
  /** How often a session that was cut short is begun anew in one round. */
  restarts: 8,
  /** How long a peer works for us on one request before it answers that there is more. */
  backMs: 10_000,
} as const;
