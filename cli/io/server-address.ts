import { type AddressKey, readListenAddress } from "../../src/engine/config/config.ts";
import { formatAddress } from "../../src/engine/listen-address.ts";
import { StartRefusal } from "../../src/engine/start-refusal.ts";
import { UsageError } from "./exit.ts";
import { DEFAULT_ADDRS, type Target } from "./target.ts";

/**
 * Finds the address of this user's server, in the way `svc run` does: the environment, else the configuration file, else
 * the default. It reads only settings, and refuses what the server would refuse to start with.
 */
export async function findServerAddress(key: AddressKey): Promise<Pick<Target, "addr" | "source">> {
  const found = await readListenAddress(key).catch((error: unknown) => {
    if (error instanceof StartRefusal)
      throw new UsageError(`${error.message}\n--addr host:port passes the configuration by`);
    throw error;
  });
  if (!found) return { addr: DEFAULT_ADDRS[key] };
  const { address, source } = found;
  if (address.port === 0) {
    throw new UsageError(`${key} (${source}) lets the server take a free port; --addr names the one it took`);
  }
  return { addr: formatAddress(address), source: `${key} (${source})` };
}
