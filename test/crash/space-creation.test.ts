/** Invariant: a space whose creation was cut short by a crash is whole or absent, and whatever is listed can be written to. */
import { describe, expect } from "bun:test";
import { pace } from "../support/pace.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { SpaceInfo } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { checkDatabases } from "./database-check.ts";
import { usableSpace } from "./journal.ts";

describe("between the steps of creating a space", () => {
  for (const point of ["space-create:intent", "space-create:space", "space-create:row"]) {
    rule(
      `[SPACE-6] killed at ${point}: the space is whole or absent after the restart, and creating goes on`,
      async () => {
        const root = scratchDir("svc-crash");
        using _ = root;
        const before = await startServer({ dataDir: root.path });
        const kept = await createSpace(before.client, "kept");
        await before.stop();

        const doomed = await startServer({ dataDir: root.path, env: { SVC_CRASH_AT: point } });
        const answered = await createSpace(doomed.client, "interrupted").then(
          () => true,
          () => false,
        );
        if (answered) await doomed.kill();
        await doomed.exited;
        expect({ point, answered }).toEqual({ point, answered: false });

        for (let restart = 0; restart < 2; restart++) {
          const server = await startServer({ dataDir: root.path });
          const list = await server.client.get<SpaceInfo[]>("/v1/spaces?status=all");
          expect(list.map((space) => space.id)).toContain(kept.id);
          for (const space of list) {
            expect([space.name, await usableSpace(server.client, space)]).toEqual([space.name, undefined]);
            await createObject(server.client, space.id);
          }
          await createSpace(server.client, `after-${restart}`);
          await server.stop();
          expect(checkDatabases(root.path)).toEqual([]);
        }
      },
      60_000,
    );
  }

  rule(
    "[SPACE-6] twelve kills while spaces are being created: every listed space is whole and writable",
    async () => {
      const rng = createRng(runSeed("crash in space creation"));
      const root = scratchDir("svc-crash");
      using _ = root;
      const acknowledged = new Set<string>();
      for (let round = 0; round < 12; round++) {
        const server = await startServer({ dataDir: root.path });
        const list = await server.client.get<SpaceInfo[]>("/v1/spaces?status=all");
        for (const space of list)
          expect([space.name, await usableSpace(server.client, space)]).toEqual([space.name, undefined]);
        const ids = new Set(list.map((space) => space.id));
        expect([...acknowledged].filter((id) => !ids.has(id))).toEqual([]);
        const creating = Array.from({ length: 3 }, async () => {
          for (;;) acknowledged.add((await createSpace(server.client)).id);
        });
        const ended = Promise.allSettled(creating);
        await pace(rng.int(3, 60));
        await server.kill();
        await ended;
      }
      const last = await startServer({ dataDir: root.path });
      const list = await last.client.get<SpaceInfo[]>("/v1/spaces?status=all");
      for (const space of list) await createObject(last.client, space.id);
      await last.stop();
      expect(checkDatabases(root.path)).toEqual([]);
    },
    120_000,
  );
});
