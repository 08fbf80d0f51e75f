import { expect, spyOn, test } from "bun:test";
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { until } from "../../../test/support/server/client.ts";
import type { BootEnd } from "../../../test/support/server/failing-boots.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { createWallet } from "../../crypto/wallet.ts";
import { loadConfig } from "../config/config.ts";
import { bootEngine } from "./boot.ts";

/** What boots an account that was made a moment ago, and its directory. */
async function freshAccount(root: string) {
  const wallet = await createWallet({ machineId: "m" });
  const accountDir = join(root, wallet.accountId);
  mkdirSync(accountDir);
  const env = { SVC_P2P_ENABLED: "false", SVC_INDEX_ENABLED: "false", SVC_RUNTIME_ENABLED: "false" };
  const config = await loadConfig({ env, homeDir: root, flags: { "data-dir": root } });
  return { accountDir, boot: () => bootEngine({ accountDir, wallet, config, log: silentLog, clock: systemClock }) };
}

test("[SRV-3] an engine is there before its boot pass has ended, says so, and answers meanwhile", async () => {
  using root = scratchDir("svc-boot");
  const { boot } = await freshAccount(root.path);
  for (const named of [[], ["kept"]]) {
    const engine = await boot();
    try {
      expect(engine.bootstrapping()).toBe(true);
      expect(engine.spaces.list("active").map(({ name }) => name ?? "")).toEqual(named);
      if (named.length === 0) await engine.life.create({ name: "kept" });
      await until(() => !engine.bootstrapping(), "the end of the boot pass");
    } finally {
      await engine.close();
    }
  }
});

test("[SPACE-6] a space that could not be made is tried again every half minute", async () => {
  using root = scratchDir("svc-boot");
  const { accountDir, boot } = await freshAccount(root.path);
  using intervals = spyOn(globalThis, "setInterval");
  const engine = await boot();
  try {
    await until(() => !engine.bootstrapping(), "the end of the boot pass");
    const [folder, away] = [join(accountDir, "sdk"), join(accountDir, "away")];
    renameSync(folder, away);
    await expect(engine.life.create({ name: "late" })).rejects.toThrow();
    expect([engine.unfinishedSpaces().length, engine.spaces.list("active")]).toEqual([1, []]);
    renameSync(away, folder);
    const halfMinutely = intervals.mock.calls.filter(([, ms]) => ms === 30_000);
    for (const [run] of halfMinutely) (run as () => void)();
    await until(() => engine.unfinishedSpaces().length === 0, "the space");
    expect(engine.spaces.list("active").map(({ name }) => name)).toEqual(["late"]);
  } finally {
    await engine.close();
  }
});

test("a boot that fails closes every database that it opened", async () => {
  using root = scratchDir("svc-boot");
  const { accountDir, boot } = await freshAccount(root.path);
  const inTheWay = join(accountDir, "files");
  writeFileSync(inTheWay, "not a directory");
  await expect(boot()).rejects.toThrow("EEXIST");
  // The last that closes a database removes its log.
  const open = readdirSync(join(accountDir, "sdk")).filter((name) => !name.endsWith(".db"));
  expect(open).toEqual([]);

  rmSync(inTheWay);
  await (await boot()).close();
});

test("a boot that fails, in whichever phase, and one that is closed while it starts leave nothing open", async () => {
  using root = scratchDir("svc-boot");
  const program = join(import.meta.dir, "../../../test/support/server/failing-boots.ts");
  const child = Bun.spawn([process.execPath, program, root.path], {
    stdout: "pipe",
    stderr: "inherit",
    timeout: 60_000,
  });
  const lines = (await new Response(child.stdout).text()).trimEnd().split("\n");
  const ends = lines.map((line) => JSON.parse(line) as BootEnd);
  const whole = ["", "closed while it starts"];
  for (const { broken, error, open, left } of ends) {
    expect([broken, error === undefined]).toEqual([broken, whole.includes(broken)]);
    expect([broken, open, left]).toEqual([broken, [], []]);
  }
  expect(ends).toHaveLength(14);
  // It ends by itself only if no timer, socket, thread or child is left.
  expect([await child.exited, child.signalCode]).toEqual([0, null]);
});
