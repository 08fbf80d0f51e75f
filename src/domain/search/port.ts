import type { SearchableTypes } from "../../search/index/search-config.ts";

/** A space as search sees it, open. */
export interface SearchableSpace {
  readonly types: SearchableTypes;
  /** Drops up to `limit` entries of the log of rows before a number; in a write of its own. */
  trimLog(before: number, limit: number): Promise<number>;
  /** The number of the last entry. */
  logHead(): number;
}
