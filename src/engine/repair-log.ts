import { bytesToHex } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { type RepairCode, type RepairFacts, repairWords } from "../protocol/repair-words.ts";
import type { Repair, SpaceRepairs } from "../protocol/sync.ts";
import type { AccountStore } from "../store/account-store.ts";

/** So many repairs of a space are shown, the latest. */
const KEPT = 100;
/** What is told of within this time is stored together: a damaged table may be thousands of repairs. */
const STORE_MS = 500;
/** What cannot be set right here. */
const NEEDS_A_PERSON = new Set<RepairCode>(["space.database"]);

interface RepairLogDeps {
  account: Pick<AccountStore, "repairs" | "setRepairs">;
  clock: Clock;
  log: Log;
}

export type RepairLog = ReturnType<typeof createRepairLog>;

/**
 * What the disk changed of each space, and what became of it: told in the log and shown to people, over a restart too. Only what
 * was told of in the last moments before a crash stands in the log alone (STORE-10).
 */
export function createRepairLog({ account, clock, log }: RepairLogDeps) {
  const changed = new Map<SpaceId, SpaceRepairs>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  const stored = (spaceId: SpaceId): SpaceRepairs => {
    const text = account.repairs(spaceId);
    return text === undefined ? { count: 0, latest: [] } : (JSON.parse(text) as SpaceRepairs);
  };
  const of = (spaceId: SpaceId): SpaceRepairs => changed.get(spaceId) ?? stored(spaceId);
  const store = (): void => {
    clearTimeout(timer);
    timer = undefined;
    for (const [spaceId, repairs] of changed) account.setRepairs(spaceId, JSON.stringify(repairs));
    changed.clear();
  };

  return {
    note(spaceId: SpaceId, code: RepairCode, found: RepairFacts): void {
      const { what, facts } = repairWords(code, found);
      log[NEEDS_A_PERSON.has(code) ? "error" : "warn"](what, { ...facts, spaceId });
      const { count, latest } = of(spaceId);
      const repair: Repair = { at: new Date(clock.nowMs()).toISOString(), what, facts: texts(facts) };
      changed.set(spaceId, { count: count + 1, latest: [repair, ...latest].slice(0, KEPT) });
      timer ??= setTimeout(store, STORE_MS);
    },
    /** Newest first. */
    of,
    /** Stores what has been told of until now. */
    close: store,
  };
}

/** Facts as texts: what is none as its JSON, bytes in hex. */
const texts = (facts: RepairFacts): Record<string, string> =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([name, fact]) => {
      const text = JSON.stringify(fact, (_, value: unknown) =>
        value instanceof Uint8Array ? bytesToHex(value) : value,
      );
      return text === undefined ? [] : [[name, typeof fact === "string" ? fact : text]];
    }),
  );
