/** A space that cannot be made: refused with nothing left of it, now and at later starts; one that fails holds up no other. */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type SpaceInfo, until } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

interface Health {
  bootstrapping: boolean;
  warnings?: { code: string; message: string }[];
}

/** Text that no compression makes fit into a change. */
const incompressible = (chars: number): string => {
  const rng = createRng(7);
  const bytes = Uint8Array.from({ length: Math.ceil((chars * 3) / 4) }, () => rng.int(0, 255));
  return Buffer.from(bytes).toString("base64").slice(0, chars);
};
const ICON = `data:image/png;base64,${incompressible(746_690)}`;

const databases = (root: string): string[] =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => /sdk\/[^/]*\.db$/.test(path))
    .sort();

/** A data root whose server was killed between the intent to make a space and the space, and a way to change the intent. */
async function interrupted(root: string): Promise<(change: (intent: Record<string, unknown>) => unknown) => string> {
  const first = await startServer({ dataDir: root });
  await createSpace(first.client, "kept");
  await first.stop();
  const doomed = await startServer({ dataDir: root, env: { SVC_CRASH_AT: "space-create:intent" } });
  await createSpace(doomed.client, "interrupted").catch(() => undefined);
  await doomed.exited;
  const path = databases(root).find((file) => file.endsWith("account.db"))!;
  return (change) => {
    using db = new Database(join(root, path));
    const row = db.query<{ space_id: string; payload: Uint8Array }, []>("SELECT * FROM intents").get()!;
    const payload = Buffer.from(JSON.stringify(change(JSON.parse(Buffer.from(row.payload).toString()))));
    db.query("UPDATE intents SET payload = ?").run(payload);
    return row.space_id;
  };
}

describe("a space that cannot be made", () => {
  for (const [what, body] of [
    ["an icon that no change has room for", { name: "Home", iconCid: ICON }],
    ["a name that no record has room for", { name: "n".repeat(1_045_000) }],
  ] as const)
    rule(`[SPACE-6] ${what} is refused, and nothing of the space stays, also after a start`, async () => {
      const root = scratchDir("svc-refused");
      using _ = root;
      const server = await startServer({ dataDir: root.path });
      await createSpace(server.client, "kept");
      const before = databases(root.path);
      await server.client.fails("POST", "/v1/spaces", body, 400, "request.invalid_field");
      expect(databases(root.path)).toEqual(before);
      await server.stop();
      const again = await startServer({ dataDir: root.path });
      const kept = await again.client.get<SpaceInfo[]>("/v1/spaces?status=all");
      expect(kept.map(({ name }) => name)).toEqual(["kept"]);
      expect(databases(root.path)).toEqual(before);
      expect(again.stderr()).not.toContain("boot pass failed");
      await again.stop();
    });

  rule("[SPACE-6] an intent that is refused for good is undone at the start, and the start goes on", async () => {
    const root = scratchDir("svc-refused");
    using _ = root;
    const changeIntent = await interrupted(root.path);
    const spaceId = changeIntent((intent) => ({ ...intent, metadata: { name: "Home", iconCid: ICON } }));
    const server = await startServer({ dataDir: root.path });
    await server.client.fails("GET", `/v1/spaces/${spaceId}`, undefined, 404, "space.not_found");
    expect(databases(root.path).filter((path) => path.includes(spaceId))).toEqual([]);
    expect(server.stderr()).toContain("is refused, and was undone");
    const kept = await server.client.get<SpaceInfo[]>("/v1/spaces");
    await untilNoticed(server.client, kept[0]!.id);
    expect((await server.client.get<Health>("/v1/health")).warnings).toBeUndefined();
    await server.stop();
  });

  rule("[SPACE-6] an intent that fails otherwise is shown and kept; the start goes on without it", async () => {
    const root = scratchDir("svc-refused");
    using _ = root;
    const changeIntent = await interrupted(root.path);
    const spaceId = changeIntent((intent) => ({ ...intent, header: "" }));
    const server = await startServer({ dataDir: root.path });
    const kept = await server.client.get<SpaceInfo[]>("/v1/spaces");
    await untilNoticed(server.client, kept[0]!.id);
    expect((await server.client.get<Health>("/v1/health")).warnings).toEqual([
      { code: "space.unfinished", message: expect.stringContaining(spaceId) },
    ]);
    await server.stop();
  });
});

/** The workers have started: a round was made over the space. */
const untilNoticed = (client: Awaited<ReturnType<typeof startServer>>["client"], spaceId: string) =>
  until(async () => {
    const { state } = await client.get<{ state: string }>(`/v1/spaces/${spaceId}/sync-status`);
    return state !== "unknown";
  }, "a round over the space");
