/** Numbers that callers can observe (API-8). Bytes unless the name says otherwise. */
export const LIMITS = {
  /** Of a request's first line and headers together; the executable is built with it. */
  requestHeadBytes: 256 << 10,
  bodyBytes: 1 << 20,
  /** Of a body that a refusal leaves unread: so much is still taken in, and thrown away, before it is answered. */
  unreadBodyBytes: 64 << 20,
  /** A body that is thrown away may pause for so long, and take so long in all. */
  unreadPauseMs: 1_000,
  unreadTotalMs: 10_000,
  /**
   * Nesting of a request body, with room for a filter of `filterDepth`; a deeper one is refused before any code recurses
   * into it.
   */
  bodyDepth: 128,
  filterNodes: 200,
  filterDepth: 32,
  filterListEntries: 1000,
  regexChars: 1000,
  /** Instructions of a compiled regex; repetitions that would need more are refused. */
  regexProgramSize: 5000,
  sortKeys: 32,
  /** Stages of a pipeline, including those of its facets. */
  pipelineStages: 100,
  expressionNodes: 1000,
  expressionDepth: 32,
  /** One document inside a pipeline, by its estimated size in memory. */
  pipelineDocumentBytes: 16 << 20,
  groupLimitDefault: 50_000,
  accumArrayLimitDefault: 10_000,
  memoryLimitBytesDefault: 256 << 20,
  chatTextBytes: 32 << 10,
  /** Characters of a name, a description or an icon of a space or an account, which every member's list of spaces copies. */
  aboutTextChars: 16 << 10,
  /** Of a file: 8 TiB, so that what is kept about its chunks stays small whatever its row says. */
  fileBytes: 2 ** 43,
  /** Files with fewer bytes are stored in their rows. */
  inlineFileBytes: 4096,
  fileNameBytes: 4096,
  /** Blocks that one request makes from markdown: they are written together, in one turn of the event loop. */
  markdownBlocks: 1 << 16,
  /** Edits of one `PATCH markdown`. */
  markdownEdits: 256,
  eventDataBytes: 64 << 10,
  patternsPerSpace: 100,
  historyPageDefault: 50,
  historyPageMax: 200,
  /** A page of the history ends early at this size, with a cursor. */
  historyPageBytes: 4 << 20,
  /** Changes in one coalesced entry; a longer run becomes several entries. */
  historyGroupChanges: 1000,
  historyGroupRecords: 10_000,
  /** Records in a view or diff of an old version. */
  historyViewRecords: 10_000,
  historyViewBytes: 8 << 20,
  upsertPageDefault: 500,
  /** Trace ids of a change; every record that it writes keeps them. */
  traceIds: 32,
  traceIdChars: 256,
  drainMs: 10_000,
  keepaliveMs: 25_000,
  mailboxCapacityDefault: 256,
  mailboxCapacityMin: 16,
  driftBudgetPercentDefault: 30,
  forwarderCapacity: 16,
  /** Bytes that one stream's mailbox may hold, besides its limit on frames; a single larger frame still passes. */
  mailboxBytes: 16 << 20,
  /** A stream whose reader takes nothing for this long is cut off. */
  streamReadDeadlineMs: 60_000,
  /** Event streams open at once; more are refused with server.unavailable. */
  openStreams: 16_384,
  /** Subscriptions of one multiplexed stream at one time. */
  streamSubscriptions: 256,
  subscriptionIdChars: 64,
  /** Bytes of all frames that wait in one multiplexed stream. */
  multiplexBytes: 8 << 20,
  /** Subscriptions of one multiplexed stream whose first frames are made but not yet taken. */
  multiplexOpenings: 4,
  /** Fields of one dataset's definition, and bytes of all of them as text. */
  datasetFields: 500,
  declarationChars: 128 << 10,
  shapeDepth: 16,
  idPatternChars: 512,
  /** Instructions of an id pattern times idMaxLen: every id that a member writes is matched on every device. */
  idPatternSteps: 1 << 16,
  /** A record's document as JSON, with everything that the server adds to it. */
  recordBytes: 1 << 20,
  /** Upper limit of a definition's idMaxLen, and of every record id. */
  recordIdChars: 512,
  sealedChangeBytes: 512 << 10,
  /** What a change says, as JSON: room for what the server adds to a request. */
  openedChangeBytes: 2 << 20,
  changeParents: 64,
  /** Members and open invites of a space, counted together. */
  spaceMembers: 1000,
  /**
   * Spaces of one kind (one-to-one, or added to) that others may have waiting for this account's answer: anybody can begin
   * one, so what comes beyond is not shown until there is room.
   */
  pendingSpaces: 256,
  /** One-to-one requests that are kept for that, of strangers and of others each. */
  keptRequests: 2048,
  /** Spaces that others say they added this account to, which are looked for. */
  claims: 1024,
} as const;
