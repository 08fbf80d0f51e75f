/**
 * How much the fuzzers of a run try: a million things that come from others. Most are messages alone; what takes an exchange,
 * a file or a call counts as the share that it has of them.
 */
const MESSAGES = Number(process.env["FUZZ_CASES"] ?? 1_000_000);
/** So many of them are tried with each seed that is kept, the others with the one that is drawn anew. */
const KEPT_SHARE = 0.05;

export const fuzzCases = (share: number, isKept = false): number =>
  Math.ceil(MESSAGES * share * (isKept ? KEPT_SHARE : 1));
