import { readListenAddress } from "../../src/engine/config/config.ts";
import { formatAddress } from "../../src/engine/listen-address.ts";
import { StartRefusal } from "../../src/engine/start-refusal.ts";
import { UsageError } from "./exit.ts";
import { DEFAULT_ADDR, type Target } from "./target.ts";

/**
 * Where this user's server listens, read as `svc run` reads it: the environment, else the configuration file, else
 * the default. Reads settings and nothing else; what the server would refuse to start with is refused here too.
 */
export async function findServerAddress(): Promise<Pick<Target, "addr" | "source">> {
  const found = await readListenAddress().catch((error: unknown) => {
    if (error instanceof StartRefusal)
      throw new UsageError(`${error.message}\n--addr host:port passes the configuration by`);
    throw error;
  });
  if (!found) return { addr: DEFAULT_ADDR };
  const { address, source } = found;
  if (address.port === 0) {
    throw new UsageError(`listen.addr (${source}) lets the server take a free port; --addr names the one it took`);
  }
  return { addr: formatAddress(address), source: `listen.addr (${source})` };
}
