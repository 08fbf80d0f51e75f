/** What a server still has to tell its push node. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { until } from "../server/client.ts";
import type { RunningServer } from "../server/server.ts";

/** Until the node has taken, or refused, every push that the server made: what was not told by then is not told. */
export async function untilPushed(server: RunningServer): Promise<void> {
  const { account } = await server.client.get<{ account: string }>("/v1/health");
  const path = join(server.dataDir, account, "push.db");
  const waiting = (): number => {
    using db = new Database(path, { readonly: true });
    return db.query<{ count: number }, []>("SELECT count(*) AS count FROM outbox").get()!.count;
  };
  await until(() => waiting() === 0, "every push to be told");
}
