import type { Service } from "../../base/service.ts";
import type { PackedVector, VectorModel } from "../../store/search/vector-table.ts";

export type EmbedderState =
  /** There is none to use. */
  | "absent"
  /** It is there, or is fetched, but cannot be asked now. */
  | "unavailable"
  | "ready";

/** Turns texts into vectors. */
export interface Embedder extends Service {
  state(): EmbedderState;
  /** Packed vectors of each text's parts, and what made them. Rejects when it cannot now. */
  embed(texts: readonly string[], use: "query" | "passage"): Promise<EmbeddedTexts>;
  /** Calls back whenever it can be asked again. */
  onReady(listener: () => void): void;
}

export interface EmbeddedTexts {
  readonly model: VectorModel;
  readonly vectors: readonly (readonly PackedVector[])[];
}

/** The process that embeds died over a text, or hung: the text may be the reason. Its model was loaded by then. */
export class EmbedderLost extends Error {}
