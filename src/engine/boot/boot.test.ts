import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { until } from "../../../test/support/server/client.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { createWallet } from "../../crypto/wallet.ts";
import { loadConfig } from "../config/config.ts";
import { bootEngine } from "./boot.ts";

test("[SRV-3] an engine is there before its boot pass has ended, says so, and answers meanwhile", async () => {
  using root = scratchDir("svc-boot");
  const wallet = await createWallet({ machineId: "m" });
  const accountDir = join(root.path, wallet.accountId);
  mkdirSync(accountDir);
  const env = { SVC_P2P_ENABLED: "false", SVC_INDEX_ENABLED: "false", SVC_RUNTIME_ENABLED: "false" };
  const config = await loadConfig({ env, homeDir: root.path, flags: { "data-dir": root.path } });
  const boot = () => bootEngine({ accountDir, wallet, config, log: silentLog, clock: systemClock });
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
