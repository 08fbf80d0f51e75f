import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { AccountId } from "../../base/ids.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import type { AclMade } from "../compose/compose.ts";
import type { AclLog } from "../log/acl-log.ts";

/** Most records kept whose accounts may still have to be notified; beyond that the oldest are forgotten. */
const KEPT = 256;

interface UnnotifiedDeps {
  readonly accountKey: Uint8Array;
  readonly acl: AclLog;
  readonly engine: ChangeEngine;
}

/**
 * The accounts that this device admits and has not notified yet (ACL-8). They are stored before the record can count. So a device
 * that dies in between, or never learns what became of the record, notifies them once it sees that the record counts.
 * Notifying twice does no harm.
 */
export function createUnnotified({ accountKey, acl, engine }: UnnotifiedDeps) {
  const { unnotified } = engine.store;
  /** Records kept in this run: only the code that appends them knows whether they may still come to count. */
  const ofThisRun = new Set<string>();
  let last: Promise<void> = Promise.resolve();

  /** Called in the transaction of the record itself, or before others can see the record. */
  const put = ({ id, admits }: AclMade): void => {
    const accounts = admits.filter((account) => !equalBytes(account, accountKey));
    if (accounts.length === 0) return;
    ofThisRun.add(bytesToHex(id));
    unnotified.put({ record: id, position: acl.records().length, accounts }, KEPT);
  };

  const drop = (records: readonly Uint8Array[]): Promise<void> =>
    engine.write(() => {
      for (const record of records) unnotified.drop(record);
    });

  const notifyAll = async (notify: (accounts: AccountId[]) => Promise<void>): Promise<void> => {
    for (const { record, accounts } of unnotified.all()) {
      if (acl.at(record) === undefined) continue;
      const members = accounts.filter((account) => acl.permission(account) !== "none");
      if (members.length > 0) await notify(members.map(accountIdOf));
      await drop([record]);
    }
  };

  return {
    put,
    /** Called before others can see the record; durable when it resolves. */
    async keepUnnotified(made: AclMade): Promise<void> {
      if (made.admits.length > 0) await engine.write(() => put(made));
    },
    /** Forgets a record that did not come to count. */
    async forgetUnnotified({ id, admits }: AclMade): Promise<void> {
      if (admits.length > 0) await drop([id]);
    },
    /**
     * Call this when the log holds all that others see. Forgets records of earlier runs that are not pending and whose
     * place another record has.
     */
    async forgetUnnotifiedInVain(): Promise<void> {
      const vain = unnotified
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
    /**
     * Notifies the accounts that this device admitted, as far as they are members by now. Those that fail are tried again
     * next time.
     */
    notifyAdmitted(notify: (accounts: AccountId[]) => Promise<void>): Promise<void> {
      const next = last.then(() => notifyAll(notify));
      last = next.catch(() => undefined);
      return next;
    },
  };
}
