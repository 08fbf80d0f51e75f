import { bytesToUtf8, utf8ToBytes } from "../../base/bytes.ts";
import type { SpaceStore } from "../../store/space-store.ts";

/**
 * What people must be told about a space's log (ACL-13). `split`: no rule decides between two branches, so somebody shows
 * different logs to different people; `rolled_back`: the log here, or the part of it in a store, is older than what was
 * seen before; `key`: an epoch whose author did not give the key it claims.
 */
export interface AclAlarm {
  kind: "split" | "rolled_back" | "key";
  /** Hex id of the record, or of the epoch's key. */
  record: string;
}

const KEY = "acl-alarms";
const MAX_ALARMS = 32;

/** The alarms of a space, which are durable. */
export function createAlarms(store: SpaceStore) {
  const list = (): AclAlarm[] => {
    const stored = store.meta(KEY);
    return stored ? (JSON.parse(bytesToUtf8(stored)!) as AclAlarm[]) : [];
  };
  return {
    list,
    /** Returns whether the alarm is new. */
    raise(alarm: AclAlarm): boolean {
      const known = list();
      if (known.some((one) => one.kind === alarm.kind && one.record === alarm.record)) return false;
      store.putMeta(KEY, utf8ToBytes(JSON.stringify([alarm, ...known].slice(0, MAX_ALARMS))));
      return true;
    },
    /** Ends an alarm whose cause is gone. */
    end(alarm: AclAlarm): void {
      const left = list().filter((one) => one.kind !== alarm.kind || one.record !== alarm.record);
      store.putMeta(KEY, utf8ToBytes(JSON.stringify(left)));
    },
  };
}
