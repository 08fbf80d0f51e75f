/** What a run may use unless its trigger says less; configuration sets the hard maxima. */
export const PROGRAM_LIMITS = {
  /** Units: entries of functions and iterations of loops of the interpreter. */
  fuelPerRun: 2_000_000_000,
  timeoutS: 600,
  memoryMiB: 64,
  /** Bytes of a program's source. */
  sourceBytes: 1 << 20,
  /** Bytes of JSON that a call may pass, in either direction, and a run may return. */
  callBytes: 4 << 20,
  /** Calls that a run may have under way at once. */
  callsAtOnce: 64,
  /** Calls in one run. */
  callsPerRun: 10_000,
  /** Characters that a run may write into its log. */
  logChars: 8 << 20,
  /** Runs side by side. */
  runsAtOnce: 4,
} as const;

/** The word that makes the executable a process for programs: `svc __program`. */
export const PROGRAM_CHILD = "__program";

/** Fuel after which the host looks at the clock: some tens of milliseconds. */
export const FUEL_SLICE = 20_000_000;
export const PAGE_BYTES = 65_536;
/** Longest line between the server and the child: a call's JSON, escaped once more, and what stands around it. */
export const MESSAGE_BYTES = 4 * PROGRAM_LIMITS.callBytes;
