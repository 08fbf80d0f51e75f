import type { Refusal } from "../../protocol/refusals.ts";
import type { WaitKind } from "../../store/tables/parked-table.ts";

/** What became of one change that came in. Verdicts are per change: a bad one never holds up its neighbours. */
export type IngestVerdict =
  /** `refusal`: why it has no effect although it is in the graph. `late`: it was there already, and its body has come. */
  | { kind: "stored"; counts: boolean; refusal?: Refusal; late?: true }
  | { kind: "known" }
  | { kind: "parked"; waitKind: WaitKind; waitFor: Uint8Array }
  /** It will never be understood: it is kept aside, shown in debug, and not asked for again. */
  | { kind: "quarantined"; refusal: Refusal }
  /**
   * Not kept, because a quota is used up. It may be offered again. Nobody misses what strangers sent. `crowded`: it is the
   * quota of all authors together that is used up, so the author is not the cause.
   */
  | { kind: "refused"; refusal: Refusal; ofStranger: boolean; crowded?: true };
