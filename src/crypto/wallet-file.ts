import { link, open, readdir, readFile, realpath, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { bytesToHex } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";

/** The points between the steps of a write; the tests stop the process at each. */
export type WalletWriteStep = "created" | "written" | "synced" | "placed" | "durable";
type OnStep = (step: WalletWriteStep) => void;

/** The text of a wallet file, or undefined when there is none. */
export async function readWalletFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Puts the text in place of whatever is at the path, mode 0600. A crash at any point leaves the old file or the new one,
 * whole; when the promise resolves the new one is on disk. A symbolic link is followed. The directory must exist.
 */
export async function writeWalletFile(path: string, text: string, onStep: OnStep = noStep): Promise<void> {
  const target = await realpath(path).catch((error) => {
    if (errorCode(error) === "ENOENT") return path;
    throw error;
  });
  await placeFile(target, text, onStep, (temporary) => rename(temporary, target));
}

/**
 * As `writeWalletFile`, but never over an existing file: false when there is one, which is then untouched. Two processes
 * that create a wallet at once cannot lose one another's words.
 */
export async function createWalletFile(path: string, text: string, onStep: OnStep = noStep): Promise<boolean> {
  let created = true;
  await placeFile(path, text, onStep, async (temporary) => {
    try {
      await link(temporary, path); // unlike rename, refuses to replace
    } catch (error) {
      if (NO_HARD_LINKS.has(errorCode(error) ?? "")) {
        if (await exists(path)) created = false;
        else return rename(temporary, path);
      } else if (errorCode(error) === "EEXIST") created = false;
      else throw error;
    }
    await unlink(temporary);
  });
  return created;
}

/** What file systems without hard links answer. */
const NO_HARD_LINKS = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

async function placeFile(
  target: string,
  text: string,
  onStep: OnStep,
  place: (temporary: string) => Promise<void>,
): Promise<void> {
  const directory = dirname(target);
  await removeStaleTemporaries(directory, basename(target));
  const temporary = join(directory, temporaryName(basename(target)));
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      onStep("created");
      await file.writeFile(text);
      onStep("written");
      await file.sync();
    } finally {
      await file.close();
    }
    onStep("synced");
    await place(temporary);
  } catch (error) {
    await unlink(temporary).catch(() => undefined); // it may not have been made; the first error is the one to tell
    throw error;
  }
  onStep("placed");
  await syncDirectory(directory);
  onStep("durable");
}

/** `.<name>.<pid>.<random>.tmp`: a later write can tell whether its writer is still alive. */
function temporaryName(name: string): string {
  return `.${name}.${process.pid}.${bytesToHex(randomBytes(6))}.tmp`;
}

/** Removes what writers that are gone have left behind: it holds secrets. */
async function removeStaleTemporaries(directory: string, name: string): Promise<void> {
  for (const entry of await readdir(directory)) {
    if (!entry.startsWith(`.${name}.`)) continue;
    const pid = entry.slice(name.length + 2).match(/^(\d+)\.[0-9a-f]{12}\.tmp$/)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    await unlink(join(directory, entry)).catch((error) => {
      if (errorCode(error) !== "ENOENT") throw error; // another process was quicker
    });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== "ESRCH";
  }
}

/** Makes the new name durable. Windows cannot open a directory, and journals names by itself. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

function noStep(): void {}
