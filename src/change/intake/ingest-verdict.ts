import type { WaitKind } from "../../store/parked-table.ts";

/** What became of one change that came in. Verdicts are per change: a bad one never holds up its neighbours. */
export type IngestVerdict =
  /** `reason`: why it does nothing although it is in the graph. `late`: it was there, its body has come. */
  | { kind: "stored"; counts: boolean; reason?: string; late?: true }
  | { kind: "known" }
  | { kind: "parked"; waitKind: WaitKind; waitFor: Uint8Array }
  /** Never to be understood: kept aside, shown in debug, not asked for again. */
  | { kind: "quarantined"; reason: string }
  /**
   * Not kept: a quota is used up. It may be offered again. Nothing of a stranger's is missed; `crowded`: the quota is that of
   * all together, so that it is not the author's own doing.
   */
  | { kind: "refused"; reason: string; ofStranger: boolean; crowded?: true };
