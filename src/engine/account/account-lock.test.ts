import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AccountId } from "../../base/ids.ts";
import { processStart } from "../process-start.ts";
import { lockAccount } from "./account-lock.ts";

const base = mkdtempSync(join(tmpdir(), "svc-lock-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let count = 0;
function freshDir(pidFile?: string): string {
  const dir = join(base, String(++count));
  mkdirSync(dir);
  if (pidFile !== undefined) writeFileSync(join(dir, "server.pid"), pidFile);
  return dir;
}
const ID = "A1" as AccountId;

function attempt(dir: string): string {
  try {
    lockAccount(dir, ID).release();
    return "taken";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** Another process of ours that lives until its stdin closes. */
function sleeper() {
  return Bun.spawn(["cat"], { stdin: "pipe", stdout: "ignore" });
}

test("[SRV-2] held once, given back on release", () => {
  const dir = freshDir();
  const lock = lockAccount(dir, ID);
  expect(readFileSync(join(dir, "server.pid"), "utf8")).toBe(`${process.pid}\n${processStart(process.pid) ?? "-"}\n`);
  expect(attempt(dir)).toBe("auth.account_in_use");
  lock.release();
  expect(existsSync(join(dir, "server.pid"))).toBe(false);
  expect(attempt(dir)).toBe("taken");
});

test("[SRV-2] a live process in server.pid holds it, a dead one does not", async () => {
  const other = sleeper();
  const bare = freshDir(`${other.pid}\n`);
  const full = freshDir(`${other.pid}\n${processStart(other.pid) ?? "-"}\n`);
  expect(attempt(bare)).toBe("auth.account_in_use");
  if (processStart(other.pid) !== undefined) expect(attempt(full)).toBe("auth.account_in_use");
  other.kill("SIGKILL");
  await other.exited;
  expect([attempt(bare), attempt(full)]).toEqual(["taken", "taken"]);
});

test("[SRV-2] a process id that was given to another process does not hold it", async () => {
  const other = sleeper();
  expect(attempt(freshDir(`${other.pid}\nsome-other-boot:12345\n`))).toBe("taken");
  expect(attempt(freshDir(`${process.pid}\n`))).toBe("taken");
  other.kill();
  await other.exited;
});

test("[SRV-2] what is no process id holds nothing", () => {
  for (const text of ["", "not a pid\n", "4194303999", "0", "-1", "999999999999999999999", "12 34"]) {
    expect([text, attempt(freshDir(text))]).toEqual([text, "taken"]);
  }
});

test("[SRV-2] killed holders leave nothing to clear, and of many that come at once one gets it", async () => {
  const dir = freshDir();
  const script = `
    const { lockAccount } = await import(${JSON.stringify(join(import.meta.dir, "account-lock.ts"))});
    try { lockAccount(${JSON.stringify(dir)}, "A1"); console.log("taken"); } catch (error) { console.log(error.code); process.exit(0); }
    setInterval(() => {}, 1000);`;
  for (let round = 0; round < 2; round++) {
    const children = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" }));
    const words = await Promise.all(
      children.map(async (child) => {
        const { value } = await child.stdout.getReader().read();
        return new TextDecoder().decode(value).trim();
      }),
    );
    expect(words.sort()).toEqual(["auth.account_in_use", "auth.account_in_use", "auth.account_in_use", "taken"]);
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map((child) => child.exited));
    expect(existsSync(join(dir, "server.pid"))).toBe(true);
  }
  expect(attempt(dir)).toBe("taken");
});
