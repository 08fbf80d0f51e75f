/** What a run may use unless its trigger allows less; the configuration sets the hard maxima. */
export const PROGRAM_LIMITS = {
  /** Units of fuel: function entries and loop iterations of the interpreter. */
  fuelPerRun: 2_000_000_000,
  timeoutS: 600,
  memoryMiB: 64,
  /** Bytes of a program's source. */
  sourceBytes: 1 << 20,
  /** Bytes of JSON that a call may pass in either direction, and that a run may return. */
  callBytes: 4 << 20,
  /** Calls that a run may have under way at once. */
  callsAtOnce: 64,
  /** Calls in one run. */
  callsPerRun: 10_000,
  /** Bytes of JSON that a run may give its calls to write: all of it is kept, by everybody in the space. */
  writtenBytes: 64 << 20,
  /** Characters that a run may write into its log. */
  logChars: 8 << 20,
  /** Runs at the same time. */
  runsAtOnce: 4,
} as const;

/** The argument that makes the executable a process for programs: `svc __program`. */
export const PROGRAM_CHILD = "__program";

/** Fuel between two checks of the clock: some tens of milliseconds. */
export const FUEL_SLICE = 20_000_000;
export const PAGE_BYTES = 65_536;
/** Longest line between the server and the child: a call's JSON, escaped once more, and its wrapping. */
export const MESSAGE_BYTES = 4 * PROGRAM_LIMITS.callBytes;
