import { createEvents } from "../base/events.ts";
import { ACCOUNT_SCHEMA, KEPT_IN_ACCOUNT } from "./account-schema.ts";
import { createWaitingWrites } from "./commit/waiting-writes.ts";
import { namingFile, openDatabase } from "./database/database.ts";
import { type KeptRepair, mendSmall } from "./database/kept-thrice.ts";
import type { OwnDatabase } from "./database/own-database.ts";
import { emptyAccount } from "./empty-databases.ts";

/**
 * How many rows that wait for an answer are kept, and of how many of them are shown, of those who share a space with this
 * account and of strangers each. Of too many the first half and the last are kept, or shown: neither what came before a
 * flood nor what comes after it gives way.
 */
interface PendingBounds {
  readonly kept: number;
  readonly shown: number;
}

/** What somebody says of a space to which they added this account. Nothing of it is verified but who says it. */
export interface SpaceClaim {
  readonly spaceId: string;
  readonly adder: string;
  readonly transport: Uint8Array;
  /** Empty when none was given. */
  readonly name: string;
  readonly sinceMs: number;
}

interface AccountStoreOptions {
  onFault(error: unknown): void;
  /** Told of tables that the disk changed, as they are set right: when the store is opened, and by `mend`. */
  onRepair?(repairs: readonly KeptRepair[]): void;
  pending: PendingBounds;
}

/** Nothing is read before the copies agree. Throws as `openDatabase` does. */
function openSound(path: string, onRepair: AccountStoreOptions["onRepair"]): OwnDatabase {
  const db = openDatabase(path, { ...ACCOUNT_SCHEMA, empty: emptyAccount, durability: "full" });
  try {
    mendSmall(db, KEPT_IN_ACCOUNT, onRepair);
    return db;
  } catch (error) {
    db.close();
    throw namingFile(path, error);
  }
}

export type AccountStore = ReturnType<typeof openAccountStore>;

/**
 * Who asks for something waits for its write, and may be refused; what nobody waits for is done in time, however long another
 * program has the file locked, and `onFault` hears where it could not be. Reads see what was written.
 */
export function openAccountStore(path: string, { onFault, onRepair, pending: { kept, shown } }: AccountStoreOptions) {
  const db = openSound(path, onRepair);
  const { write, writeInTime, close } = createWaitingWrites(db, { whose: "the account's" });
  const inTime = (run: () => unknown): void => void writeInTime(run).catch(onFault);
  const mend = async (): Promise<void> => {
    const repairs = await writeInTime(() => mendSmall(db, KEPT_IN_ACCOUNT, onRepair));
    if (repairs.length > 0) shownIds = findShown();
  };
  // Whoever reads it is refused, once the statement that met it has ended.
  db.onMistyped(() => queueMicrotask(() => void mend().catch(onFault)));
  const putIntent = db.query<null, [string, Uint8Array]>(
    "INSERT INTO intents(space_id, payload) VALUES(?, ?) ON CONFLICT(space_id) DO UPDATE SET payload = excluded.payload",
  );
  const dropIntent = db.query<null, [string]>("DELETE FROM intents WHERE space_id = ?");
  const intents = db.query<{ space_id: string; payload: Uint8Array }, []>(
    "SELECT space_id, payload FROM intents ORDER BY space_id",
  );
  const localSpace = db.query<{ clean: number; projection: number }, [string]>(
    "SELECT clean, projection FROM local_spaces WHERE space_id = ?",
  );
  const markSpace = db.query<null, [string, number, number]>(
    "INSERT INTO local_spaces(space_id, clean, projection) VALUES(?, ?, ?) ON CONFLICT(space_id) DO UPDATE SET clean = excluded.clean, projection = excluded.projection",
  );
  const checkedMs = db.query<{ checked_ms: number }, [string]>(
    "SELECT checked_ms FROM space_checks WHERE space_id = ?",
  );
  const setCheckedMs = db.query<null, [string, number]>(
    "INSERT INTO space_checks(space_id, checked_ms) VALUES(?, ?) ON CONFLICT(space_id) DO UPDATE SET checked_ms = excluded.checked_ms",
  );
  const repairsOf = db.query<{ repairs: string }, [string]>("SELECT repairs FROM space_repairs WHERE space_id = ?");
  const setRepairs = db.query<null, [string, string]>(
    "INSERT INTO space_repairs(space_id, repairs) VALUES(?, ?) ON CONFLICT(space_id) DO UPDATE SET repairs = excluded.repairs",
  );
  const forgetRepairs = db.query<null, [string]>("DELETE FROM space_repairs WHERE space_id = ?");
  const forgetCheck = db.query<null, [string]>("DELETE FROM space_checks WHERE space_id = ?");
  const forgetSpace = db.query<null, [string]>("DELETE FROM local_spaces WHERE space_id = ?");
  const membersOf = db.query<{ identity: string }, [string]>(
    "SELECT identity FROM space_members WHERE space_id = ? ORDER BY identity",
  );
  const addMember = db.query<null, [string, string]>(
    "INSERT OR IGNORE INTO space_members(space_id, identity) VALUES(?, ?)",
  );
  const dropMember = db.query<null, [string, string]>("DELETE FROM space_members WHERE space_id = ? AND identity = ?");
  const spacesOf = db.query<{ space_id: string }, [string]>(
    "SELECT space_id FROM space_members WHERE identity = ? ORDER BY space_id",
  );
  const identities = db.query<{ identity: string }, []>(
    "SELECT DISTINCT identity FROM space_members ORDER BY identity",
  );
  const profile = db.query<{ profile: string }, [string]>("SELECT profile FROM profiles WHERE identity = ?");
  const putProfile = db.query<null, [string, string]>(
    "INSERT INTO profiles(identity, profile) VALUES(?, ?) ON CONFLICT(identity) DO UPDATE SET profile = excluded.profile",
  );
  const pendingSpace = db.query<{ row: string }, [string]>("SELECT row FROM pending_spaces WHERE space_id = ?");
  const shownOf = db.query<{ spaceId: string }, [number, number]>(
    `SELECT space_id AS spaceId FROM (SELECT space_id FROM pending_spaces WHERE known = ?1 ORDER BY no LIMIT ?2)
     UNION SELECT space_id FROM (SELECT space_id FROM pending_spaces WHERE known = ?1 ORDER BY no DESC LIMIT ?2)`,
  );
  const addPending = db.query<null, [string, number, string]>(
    "INSERT INTO pending_spaces(space_id, known, row) VALUES(?, ?, ?) ON CONFLICT(space_id) DO NOTHING",
  );
  const setPending = db.query<null, [string, string]>("UPDATE pending_spaces SET row = ? WHERE space_id = ?");
  const countPending = db.query<{ n: number }, [number]>("SELECT count(*) AS n FROM pending_spaces WHERE known = ?");
  const dropMiddle = db.query<null, [number, number]>(
    `DELETE FROM pending_spaces WHERE no = (SELECT no FROM pending_spaces WHERE known = ? ORDER BY no LIMIT 1 OFFSET ?)`,
  );
  const dropPending = db.query<null, [string]>("DELETE FROM pending_spaces WHERE space_id = ?");
  const farewells = db.query<{ space_id: string; since: number }, []>("SELECT space_id, since FROM farewells");
  const putFarewell = db.query<null, [string, number]>(
    "INSERT INTO farewells(space_id, since) VALUES(?, ?) ON CONFLICT(space_id) DO NOTHING",
  );
  const dropFarewell = db.query<null, [string]>("DELETE FROM farewells WHERE space_id = ?");
  const claims = db.query<SpaceClaim, []>(
    "SELECT space_id AS spaceId, adder, transport, name, since AS sinceMs FROM space_claims ORDER BY since, space_id",
  );
  const putClaim = db.query<null, [string, string, Uint8Array, string, number]>(
    `INSERT INTO space_claims(space_id, adder, transport, name, since) VALUES(?, ?, ?, ?, ?)
     ON CONFLICT(space_id, adder) DO UPDATE SET transport = excluded.transport, name = excluded.name, since = excluded.since`,
  );
  const claimsOf = db.query<SpaceClaim, [string]>(
    "SELECT space_id AS spaceId, adder, transport, name, since AS sinceMs FROM space_claims WHERE space_id = ?",
  );
  const countClaims = db.query<{ n: number }, []>("SELECT count(*) AS n FROM space_claims");
  const dropClaim = db.query<null, [string, string]>("DELETE FROM space_claims WHERE space_id = ? AND adder = ?");
  const events = createEvents<{ pending: [spaceId: string] }>();
  const findShown = (): Set<string> =>
    new Set([0, 1].flatMap((known) => shownOf.all(known, shown / 2).map(({ spaceId }) => spaceId)));
  let shownIds = findShown();
  /** Tells of the rows that are shown now and were not, or the other way round, and of the one that changed. */
  const showAnew = (changed: string): void => {
    const before = shownIds;
    shownIds = findShown();
    for (const spaceId of new Set([changed, ...before, ...shownIds]))
      if (spaceId === changed || before.has(spaceId) !== shownIds.has(spaceId)) events.emit("pending", spaceId);
  };
  return {
    /** Row of a space that waits for an answer on this device, as JSON text, whether it is shown or not. */
    pendingSpace: (spaceId: string): string | undefined => pendingSpace.get(spaceId)?.row,
    /** The same, if it is shown. */
    shownPendingSpace: (spaceId: string): string | undefined =>
      shownIds.has(spaceId) ? pendingSpace.get(spaceId)?.row : undefined,
    /** The rows that are shown. */
    pendingSpaces: (): string[] => [...shownIds].sort().flatMap((spaceId) => pendingSpace.get(spaceId)?.row ?? []),
    /** Of one that is there nothing changes. */
    async addPendingSpace(spaceId: string, row: string, known: boolean): Promise<void> {
      await write(() => {
        addPending.run(spaceId, known ? 1 : 0, row);
        if (countPending.get(known ? 1 : 0)!.n > kept) dropMiddle.run(known ? 1 : 0, kept / 2);
      });
      showAnew(spaceId);
    },
    async setPendingSpace(spaceId: string, row: string): Promise<void> {
      await write(() => setPending.run(row, spaceId));
      events.emit("pending", spaceId);
    },
    async dropPendingSpace(spaceId: string): Promise<void> {
      const { changes } = await write(() => dropPending.run(spaceId));
      if (changes > 0) showAnew(spaceId);
    },
    /** Called with every space whose row is shown, changed or not shown any more. Answers how to stop. */
    onPending: (listener: (spaceId: string) => void): (() => void) => events.on("pending", listener),
    /** Oldest first. */
    spaceClaims: (): SpaceClaim[] => claims.all(),
    spaceClaimsOf: (spaceId: string): SpaceClaim[] => claimsOf.all(spaceId),
    countSpaceClaims: (): number => countClaims.get()!.n,
    putSpaceClaim: ({ spaceId, adder, transport, name, sinceMs }: SpaceClaim): Promise<unknown> =>
      write(() => putClaim.run(spaceId, adder, transport, name, sinceMs)),
    dropSpaceClaim: ({ spaceId, adder }: Pick<SpaceClaim, "spaceId" | "adder">): void =>
      inTime(() => dropClaim.run(spaceId, adder)),
    farewells: () => farewells.all().map((row) => ({ spaceId: row.space_id, sinceMs: row.since })),
    putFarewell: (spaceId: string, sinceMs: number): Promise<unknown> => write(() => putFarewell.run(spaceId, sinceMs)),
    dropFarewell: (spaceId: string): void => inTime(() => dropFarewell.run(spaceId)),

    membersOf: (spaceId: string): string[] => membersOf.all(spaceId).map((row) => row.identity),
    /** Runs changes of members and profiles, and what has to be read just before them. Done in time. */
    changeDirectory: writeInTime,
    /** Replaces the members of a space, in a change of the directory. */
    setMembers(spaceId: string, wanted: readonly string[]): void {
      const known = membersOf.all(spaceId).map((row) => row.identity);
      for (const identity of known) if (!wanted.includes(identity)) dropMember.run(spaceId, identity);
      for (const identity of wanted) addMember.run(spaceId, identity);
    },
    spacesOf: (identity: string): string[] => spacesOf.all(identity).map((row) => row.space_id),
    identities: (): string[] => identities.all().map((row) => row.identity),
    /** What is known of an identity, as JSON text. */
    profile: (identity: string): string | undefined => profile.get(identity)?.profile,
    /** In a change of the directory. */
    putProfile: (identity: string, text: string): void => void putProfile.run(identity, text),

    checkedMs: (spaceId: string): number => checkedMs.get(spaceId)?.checked_ms ?? 0,
    setCheckedMs: (spaceId: string, ms: number) => void setCheckedMs.run(spaceId, ms),
    /** What was repaired of a space, as JSON text. */
    repairs: (spaceId: string): string | undefined => repairsOf.get(spaceId)?.repairs,
    setRepairs: (spaceId: string, text: string): void => inTime(() => setRepairs.run(spaceId, text)),
    putIntent: (spaceId: string, payload: Uint8Array): Promise<unknown> => write(() => putIntent.run(spaceId, payload)),
    dropIntent: (spaceId: string): void => inTime(() => dropIntent.run(spaceId)),
    intents: () => intents.all().map((row) => ({ spaceId: row.space_id, payload: row.payload })),
    isClean: (spaceId: string, projection: number): boolean => {
      const row = localSpace.get(spaceId);
      return row?.clean === 1 && row.projection === projection;
    },
    markClean: (spaceId: string, clean: boolean, projection: number): void =>
      inTime(() => markSpace.run(spaceId, clean ? 1 : 0, projection)),
    forgetSpace: (spaceId: string): void =>
      inTime(() => {
        forgetSpace.run(spaceId);
        forgetCheck.run(spaceId);
        forgetRepairs.run(spaceId);
      }),
    /** Sets right what the disk changed since it was opened. */
    mend,
    async close(): Promise<void> {
      await close();
      db.close();
    },
  };
}
