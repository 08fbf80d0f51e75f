import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { AccountId } from "../base/ids.ts";
import type { ChangeEngine } from "../change/space-engine.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import type { AclLog } from "./acl-log.ts";
import type { AclMade } from "./compose.ts";

/** Records of which somebody may have yet to be told; the oldest are forgotten beyond that. */
const KEPT = 256;

interface UntoldDeps {
  readonly accountKey: Uint8Array;
  readonly acl: AclLog;
  readonly engine: ChangeEngine;
}

/**
 * Whom this device lets in and has yet to tell. That is on the disk before the record can count: a device that dies in
 * between, or never hears what became of the record, tells them once it sees that the record counts. Telling twice does
 * nothing more.
 */
export function createUntold({ accountKey, acl, engine }: UntoldDeps) {
  const { untold } = engine.store;
  /** Of the records kept in this run nobody but who appends them knows whether anything can still come of them. */
  const ofThisRun = new Set<string>();
  let inTurn: Promise<void> = Promise.resolve();

  /** In the transaction of the record itself, or before it is put where others see it. */
  const put = ({ id, admits }: AclMade): void => {
    const accounts = admits.filter((account) => !equalBytes(account, accountKey));
    if (accounts.length === 0) return;
    ofThisRun.add(bytesToHex(id));
    untold.put({ record: id, position: acl.records().length, accounts }, KEPT);
  };

  const drop = (records: readonly Uint8Array[]): Promise<void> =>
    engine.write(() => {
      for (const record of records) untold.drop(record);
    });

  const tellAll = async (tell: (accounts: AccountId[]) => Promise<void>): Promise<void> => {
    for (const { record, accounts } of untold.all()) {
      if (acl.at(record) === undefined) continue;
      const members = accounts.filter((account) => acl.permission(account) !== "none");
      if (members.length > 0) await tell(members.map(accountIdOf));
      await drop([record]);
    }
  };

  return {
    put,
    /** Before the record is put where others see it; durable when it resolves. */
    async keepUntold(made: AclMade): Promise<void> {
      if (made.admits.length > 0) await engine.write(() => put(made));
    },
    /** Nothing came of a record. */
    async forgetUntold({ id, admits }: AclMade): Promise<void> {
      if (admits.length > 0) await drop([id]);
    },
    /**
     * Call it when the log holds all that others see: forgets those records of earlier runs in whose place another stands,
     * and that wait for none.
     */
    async forgetUntoldInVain(): Promise<void> {
      const vain = untold
        .all()
        .filter(
          ({ record, position }) =>
            position < acl.records().length &&
            acl.at(record) === undefined &&
            !acl.pending.has(record) &&
            !ofThisRun.has(bytesToHex(record)),
        );
      if (vain.length > 0) await drop(vain.map(({ record }) => record));
    },
    /** Tells the accounts that this device let in, as far as they are members by now. What fails is told the next time. */
    tellAdmitted(tell: (accounts: AccountId[]) => Promise<void>): Promise<void> {
      const next = inTurn.then(() => tellAll(tell));
      inTurn = next.catch(() => undefined);
      return next;
    },
  };
}
