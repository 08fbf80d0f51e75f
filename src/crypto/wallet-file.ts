import { existsSync } from "node:fs";
import { link, open, readdir, readFile, realpath, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { bytesToHex } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";

/** The points between the steps of a write; the tests stop the process at each. */
export type WalletWriteStep = "created" | "written" | "synced" | "placed" | "durable";
type OnStep = (step: WalletWriteStep) => void;

/** Reads the text of a wallet file; resolves to undefined when there is none. */
export async function readWalletFile(path: string): Promise<string | undefined> {
  // A start looks where no wallet is. An error would have its stack read from the source map, which takes 2 ms.
  if (!existsSync(path)) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Replaces whatever is at the path by the text, mode 0600. A crash at any point leaves either the old file or the new
 * one, complete; when the promise resolves the new one is on disk. It follows a symbolic link. The directory must exist.
 */
export async function writeWalletFile(path: string, text: string, onStep: OnStep = noStep): Promise<void> {
  const target = await realpath(path).catch((error) => {
    if (errorCode(error) === "ENOENT") return path;
    throw error;
  });
  await putFile(target, text, onStep, (temporary) => rename(temporary, target));
}

/**
 * Does the same as `writeWalletFile`, but never replaces an existing file: then it resolves to false and leaves the file
 * unchanged. So two processes that create a wallet at once cannot lose each other's words.
 */
export async function createWalletFile(path: string, text: string, onStep: OnStep = noStep): Promise<boolean> {
  let created = true;
  await putFile(path, text, onStep, async (temporary) => {
    try {
      await link(temporary, path); // unlike rename, link refuses to replace a file
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

/** Error codes of file systems without hard links. */
const NO_HARD_LINKS = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

async function putFile(
  target: string,
  text: string,
  onStep: OnStep,
  put: (temporary: string) => Promise<void>,
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
    await put(temporary);
  } catch (error) {
    await unlink(temporary).catch(() => undefined); // it may not exist; the first error is the one to report
    throw error;
  }
  onStep("placed");
  await syncDirectory(directory);
  onStep("durable");
}

/** `.<name>.<pid>.<random>.tmp`: from the pid a later write can see whether the writer is still alive. */
function temporaryName(name: string): string {
  return `.${name}.${process.pid}.${bytesToHex(randomBytes(6))}.tmp`;
}

/** Removes what dead writers left behind, because it holds secrets. */
async function removeStaleTemporaries(directory: string, name: string): Promise<void> {
  for (const entry of await readdir(directory)) {
    if (!entry.startsWith(`.${name}.`)) continue;
    const pid = entry.slice(name.length + 2).match(/^(\d+)\.[0-9a-f]{12}\.tmp$/)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    await unlink(join(directory, entry)).catch((error) => {
      if (errorCode(error) !== "ENOENT") throw error; // another process was faster
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
