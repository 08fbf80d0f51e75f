/** Engines of one space that any account may write to, and what comes of the changes that they take in. */
import type { DatasetRules } from "../../../src/change/codec/dataset-rules.ts";
import type { ChangeEngineDeps } from "../../../src/change/space-engine.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { type ScratchDir, scratchDir } from "../scratch.ts";
import { createAccount } from "./acl-world.ts";
import { createOpenGenesis, type OpenEngine, openEngine } from "./open-engine.ts";

export const ITEMS: DatasetRules = { name: "items", idRule: "user" };
/** Has no rules at the one that takes changes in: its registry throws. */
export const TRAP: DatasetRules = { name: "trap", idRule: "user" };

export interface IntakeWorld extends Disposable {
  readonly dir: ScratchDir;
  readonly genesis: ReturnType<typeof createOpenGenesis>;
  readonly owner: Account;
  open(name: string, more?: Partial<ChangeEngineDeps>, account?: Account): OpenEngine;
}

export function createIntakeWorld(of?: Pick<IntakeWorld, "genesis" | "owner">): IntakeWorld {
  const dir = scratchDir("svc-intake");
  const { genesis, owner } = of ?? { genesis: createOpenGenesis(), owner: createAccount() };
  let time = 1_700_000_000_000;
  return {
    dir,
    genesis,
    owner,
    open: (name, more = {}, account = owner) =>
      openEngine(dir.path, name, genesis, account, [ITEMS, TRAP], () => time++, {
        onFailure: (error) => {
          throw error;
        },
        ...more,
      }),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

export const write = (
  engine: OpenEngine,
  id: string,
  op: { type: "$set" | "$inc" | "$addToSet"; path: string; value: number },
) =>
  engine.write((tx) =>
    tx.append(tx.ensureDerived("intake", ""), { dataset: "items", records: [{ id, upsert: true, ops: [op] }] }, ITEMS),
  );

/** Rows, and what is kept beside the log. */
export function stateOf({ store }: OpenEngine) {
  const column = (sql: string) =>
    store.db
      .query<{ x: string }, []>(sql)
      .all()
      .map(({ x }) => x);
  return {
    rows: column("SELECT coalesce(doc, '') || state AS x FROM rows ORDER BY collectionId, id"),
    changes: column("SELECT hex(id) AS x FROM changes ORDER BY id"),
    parked: column("SELECT hex(id) || wait_kind AS x FROM parked ORDER BY id"),
    quarantined: column("SELECT hex(id) || code || facts AS x FROM quarantine ORDER BY id"),
    unblocked: column("SELECT kind AS x FROM unblocked"),
  };
}
