import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AccountId } from "../../base/ids.ts";
import { refusedAs, type SvcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { holdFile } from "../../store/database/file-mutex.ts";
import { isProcessAlive, processStart } from "../process-start.ts";

/** Held as long as an account is open here. */
export interface AccountLock {
  /** Releases the account: removes `server.pid`. */
  release(): void;
}

interface LockOwner {
  readonly pid: number;
  readonly start: string | undefined;
}

/**
 * Takes the single-instance lock of an account (SRV-2): `server.pid` names this process. A process that checks and replaces that
 * file first takes the operating system's lock on `server.lock`. Two servers that find the file of a dead one therefore cannot
 * both take over, and a crash leaves nothing that has to be cleared by hand. Throws auth.account_in_use.
 */
export function lockAccount(accountDir: string, accountId: AccountId): AccountLock {
  const pidFile = join(accountDir, "server.pid");
  const held = holdFile(join(accountDir, "server.lock"));
  if (!held) throw inUse(accountId, readOwner(pidFile));
  try {
    const owner = readOwner(pidFile);
    if (owner && isLive(owner)) throw inUse(accountId, owner);
    const own = `${process.pid}\n${processStart(process.pid) ?? "-"}\n`;
    writeWhole(pidFile, own);
    return {
      release() {
        rmSync(pidFile, { force: true });
        held[Symbol.dispose]();
      },
    };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}

function inUse(accountId: AccountId, owner: LockOwner | undefined): SvcError {
  const facts = owner ? { accountId, pid: owner.pid } : { accountId };
  return refusedAs("auth.account_in_use", { accountId }, refusal("account.in_use", facts));
}

/** A file that names this very process was left by an earlier one with the same id, because this process holds the lock. */
function isLive(owner: LockOwner): boolean {
  if (owner.pid === process.pid || !isProcessAlive(owner.pid)) return false;
  if (owner.start === undefined) return true;
  const start = processStart(owner.pid);
  // Where the system does not tell when a process began, holding the lock proves that the file's writer is gone.
  return start !== undefined && start === owner.start;
}

/** Reads `server.pid`: a process id, and on the next line when that process started. Any other content means no owner. */
function readOwner(pidFile: string): LockOwner | undefined {
  let text: string;
  try {
    text = readFileSync(pidFile, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [, digits, start] = /^(\d{1,10})(?:\n(\S+))?\s*$/.exec(text) ?? [];
  const pid = Number(digits);
  if (!Number.isInteger(pid) || pid < 1 || pid > 0x7fffffff) return undefined;
  return { pid, start: start === undefined || start === "-" ? undefined : start };
}

/** Replaces a file so that readers see the old content or the new one, never a part. */
function writeWhole(path: string, text: string): void {
  const temporary = `${path}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, path);
}
