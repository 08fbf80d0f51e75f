import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import { CostExceeded } from "./call-error.ts";

interface Tokens {
  readonly in: number;
  readonly out: number;
}

/** What one run spends, and how much it may. Concurrent calls share it. */
export interface Spending {
  readonly maxCostUsd: number | undefined;
  /** Spent and reserved. */
  heldUsd: number;
}

interface Reservation {
  /** Replaces the reservation by what was used. Returns its cost; null where the price is unknown. */
  spend(tokens: Tokens): number | null;
  /** Releases the reservation of a call that failed: as far as is known, nothing was spent. */
  release(): void;
}

export interface LlmBudget {
  /**
   * Reserves the worst case. Throws CostExceeded when it would exceed a cap, or when a cap cannot be kept because no price is
   * set.
   */
  reserve(worst: Tokens, spending: Spending | undefined): Reservation;
  /** Writes the day's cost to the disk. */
  flush(): Promise<void>;
}

export interface LlmBudgetDeps {
  /** USD per million tokens. */
  readonly priceIn: number | undefined;
  readonly priceOut: number | undefined;
  /** USD a day (UTC) on this device. */
  readonly maxCostPerDay: number | undefined;
  readonly clock: Clock;
  /** Where the day's cost is kept over restarts. */
  readonly path: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const MILLION = 1_000_000;

export async function openLlmBudget(deps: LlmBudgetDeps): Promise<LlmBudget> {
  const { priceIn, priceOut, maxCostPerDay, clock, path } = deps;
  const known = await readDay(path);
  let day = known.day;
  let heldUsd = known.usd;
  const inTurn = createSemaphore(1);
  let writing: Promise<void> = Promise.resolve();

  const costOf = (tokens: Tokens): number | null =>
    priceIn === undefined || priceOut === undefined ? null : (tokens.in * priceIn + tokens.out * priceOut) / MILLION;
  const today = (): void => {
    const now = Math.floor(clock.nowMs() / DAY_MS);
    if (now === day) return;
    day = now;
    heldUsd = 0;
  };
  const save = (): void => {
    const text = JSON.stringify({ day, usd: heldUsd });
    writing = inTurn(() => writeDay(path, text)).catch(() => undefined); // the cap holds in memory meanwhile
  };

  return {
    reserve(worst, spending) {
      today();
      const capped = maxCostPerDay !== undefined || spending?.maxCostUsd !== undefined;
      const cost = costOf(worst);
      if (cost === null) {
        if (capped)
          throw new CostExceeded("a cap needs a price: runtime.llm.priceIn and runtime.llm.priceOut are not set");
        return { spend: () => null, release: () => {} };
      }
      if (spending?.maxCostUsd !== undefined && spending.heldUsd + cost > spending.maxCostUsd)
        throw new CostExceeded(`the call could pass the ${spending.maxCostUsd} USD that the run may cost`);
      if (maxCostPerDay !== undefined && heldUsd + cost > maxCostPerDay)
        throw new CostExceeded(`the call could pass the ${maxCostPerDay} USD of runtime.llm.maxCostPerDay`);
      const take = (usd: number): void => {
        heldUsd = Math.max(0, heldUsd + usd);
        if (spending) spending.heldUsd += usd;
      };
      take(cost);
      return {
        spend(tokens) {
          const spent = costOf(tokens) as number;
          take(spent - cost);
          save();
          return spent;
        },
        release: () => take(-cost),
      };
    },
    flush: () => writing,
  };
}

/** A token is about four bytes of English, and fewer bytes of other text. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

async function readDay(path: string): Promise<{ day: number; usd: number }> {
  try {
    const { day, usd } = (await Bun.file(path).json()) as { day?: unknown; usd?: unknown };
    if (typeof day === "number" && typeof usd === "number") return { day, usd };
  } catch {
    // Nothing was spent yet, or the file is incomplete: the day then begins at zero.
  }
  return { day: 0, usd: 0 };
}

async function writeDay(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
