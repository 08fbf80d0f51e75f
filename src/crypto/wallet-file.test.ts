import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWalletFile, readWalletFile, type WalletWriteStep, writeWalletFile } from "./wallet-file.ts";

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-wallet-"));
  path = join(directory, "wallet.key");
});
afterEach(() => rm(directory, { recursive: true }));

const STEPS: readonly WalletWriteStep[] = ["created", "written", "synced", "placed", "durable"];

/** Runs a write in a separate process that kills itself with SIGKILL at the step; resolves to its pid. */
async function killedAt(step: WalletWriteStep, operation: string, text: string): Promise<number> {
  const program = `
    import { ${operation} } from ${JSON.stringify(join(import.meta.dir, "wallet-file.ts"))};
    const [path, text, step] = process.argv.slice(-3);
    await ${operation}(path, text, (at) => { if (at === step) process.kill(process.pid, "SIGKILL"); });
  `;
  const child = Bun.spawn([process.execPath, "-e", program, path, text, step], { stderr: "inherit" });
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  return child.pid;
}

for (const step of STEPS) {
  test(`[ACC-2] a writer killed at "${step}" leaves the old wallet or the new one, whole; the next write cleans up`, async () => {
    await writeWalletFile(path, "old");
    const text = "new ".repeat(500);
    await killedAt(step, "writeWalletFile", text);
    const isThere = step === "placed" || step === "durable";
    expect(await readWalletFile(path)).toBe(isThere ? text : "old");
    expect((await readdir(directory)).length).toBe(isThere ? 1 : 2);

    await writeWalletFile(path, "newest");
    expect(await readWalletFile(path)).toBe("newest");
    expect(await readdir(directory)).toEqual(["wallet.key"]);
  });

  test(`[ACC-2] a creator killed at "${step}" leaves no wallet or a whole one; creating again loses none`, async () => {
    await killedAt(step, "createWalletFile", "first");
    const isThere = step === "placed" || step === "durable";
    expect(await readWalletFile(path)).toBe(isThere ? "first" : undefined);
    expect(await createWalletFile(path, "second")).toBe(!isThere);
    expect(await readWalletFile(path)).toBe(isThere ? "first" : "second");
    expect(await readdir(directory)).toEqual(["wallet.key"]);
  });
}

test("[ACC-2] a wallet file is read and written by its owner alone, also when it was not before", async () => {
  const mode = async () => (await stat(path)).mode & 0o777;
  expect(await createWalletFile(path, "first")).toBe(true);
  expect(await mode()).toBe(0o600);
  await chmod(path, 0o644);
  await writeWalletFile(path, "second");
  expect(await mode()).toBe(0o600);
});

test("[ACC-2] the file is synced before it takes its name, the directory after", async () => {
  await writeWalletFile(path, "old");
  const handle = await open(path);
  const sync = spyOn(Object.getPrototypeOf(handle) as FileHandle, "sync");
  await handle.close();
  const seen: [step: WalletWriteStep, content: string, syncs: number][] = [];
  await writeWalletFile(path, "new", (step) => seen.push([step, readFileSync(path, "utf8"), sync.mock.calls.length]));
  sync.mockRestore();
  expect(seen).toEqual([
    ["created", "old", 0],
    ["written", "old", 0],
    ["synced", "old", 1],
    ["placed", "new", 1],
    ["durable", "new", 2],
  ]);
});

test("[ACC-2] creating never replaces: of many at once one wins, and its text is what stays", async () => {
  const attempts = Array.from({ length: 20 }, (_, i) => `wallet ${i}`);
  const created = await Promise.all(attempts.map((text) => createWalletFile(path, text)));
  expect(created.filter(Boolean)).toHaveLength(1);
  expect(await readWalletFile(path)).toBe(attempts[created.indexOf(true)]);
  expect(await readdir(directory)).toEqual(["wallet.key"]);
});

test("what a living writer or anybody else keeps beside the wallet is left alone", async () => {
  const kept = [`.wallet.key.${process.pid}.0123456789ab.tmp`, ".wallet.key.note", "wallet.key.bak", ".other.1.tmp"];
  for (const name of kept) await writeFile(join(directory, name), name);
  await writeWalletFile(path, "new");
  expect((await readdir(directory)).sort()).toEqual([...kept, "wallet.key"].sort());
});

test("a symbolic link stays one, and its target is replaced", async () => {
  const vault = join(directory, "vault");
  await mkdir(vault);
  await writeFile(join(vault, "real.key"), "old");
  await symlink(join(vault, "real.key"), path);
  await writeWalletFile(path, "new");
  expect(await readFile(join(vault, "real.key"), "utf8")).toBe("new");
  expect(await readdir(vault)).toEqual(["real.key"]);
  expect((await lstat(path)).isSymbolicLink()).toBe(true);
  expect((await readdir(directory)).sort()).toEqual(["vault", "wallet.key"]);
});

test("[ACC-2] a failed write leaves the old wallet, no temporary file, and tells its error", async () => {
  await writeWalletFile(path, "old");
  const failing = writeWalletFile(path, "new", (step) => {
    if (step === "synced") throw new Error("disk on fire");
  });
  await expect(failing).rejects.toThrow("disk on fire");
  expect(await readWalletFile(path)).toBe("old");
  expect(await readdir(directory)).toEqual(["wallet.key"]);
  await expect(writeWalletFile(join(directory, "absent", "wallet.key"), "new")).rejects.toThrow("ENOENT");
});

test("an absent wallet is undefined, an unreadable one is an error", async () => {
  expect(await readWalletFile(path)).toBeUndefined();
  await mkdir(path);
  await expect(readWalletFile(path)).rejects.toThrow("EISDIR");
});
