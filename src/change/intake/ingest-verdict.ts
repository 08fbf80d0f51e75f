import type { Refusal } from "../../protocol/refusals.ts";
import type { WaitKind } from "../../store/parked-table.ts";

/** What became of one change that came in. Verdicts are per change: a bad one never holds up its neighbours. */
export type IngestVerdict =
  /** `refusal`: why it does nothing although it is in the graph. `late`: it was there, its body has come. */
  | { kind: "stored"; counts: boolean; refusal?: Refusal; late?: true }
  | { kind: "known" }
  | { kind: "parked"; waitKind: WaitKind; waitFor: Uint8Array }
  /** Never to be understood: kept aside, shown in debug, not asked for again. */
  | { kind: "quarantined"; refusal: Refusal }
  /**
   * Not kept: a quota is used up. It may be offered again. Nothing of a stranger's is missed; `crowded`: the quota is that of
   * all together, so that it is not the author's own doing.
   */
  | { kind: "refused"; refusal: Refusal; ofStranger: boolean; crowded?: true };
