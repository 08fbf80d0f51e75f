/** A disk that fills while a file comes in. */
import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import {
  attach,
  attachFails,
  attachPath,
  bytesOf,
  content,
  type FileInfo,
  filesPath,
} from "../../support/server/files.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { startServer } from "../../support/server/server.ts";

/** No file may grow beyond this; a write past it fails as on a full disk (EFBIG, its signal ignored). */
const LIMIT_KIB = 3_000;
const wrapper = ["bash", "-c", `trap '' XFSZ; ulimit -f ${LIMIT_KIB}; exec "$@"`, "limited"];

rule("[STORE-2] a full disk is 507, nothing half is left, and writing works again once there is room", async () => {
  using root = scratchDir("svc-files-full");
  const calm = await startServer({ dataDir: root.path });
  const space = await createSpace(calm.client);
  const objectId = (await createObject(calm.client, space.id)).id;
  const kept = await attach(calm.client, space.id, objectId, bytesOf(1_000_000, 1));
  await calm.stop();
  const folder = join(root.path, readdirSync(root.path).find((name) => name.startsWith("A"))!, "files", space.id);
  const before = readdirSync(folder).sort();

  const limited = await startServer({ dataDir: root.path, wrapper });
  const refusal = await attachFails(limited.client, attachPath(space.id, objectId), bytesOf(6_000_000, 2), {
    "Content-Type": "application/octet-stream",
  });
  expect(refusal).toMatchObject({ status: 507, code: "storage.full" });
  expect(refusal.message).toContain("room");
  expect(readdirSync(folder).sort()).toEqual(before);
  const { files } = await limited.client.get<{ files: FileInfo[] }>(filesPath(space.id));
  expect(files.map(({ fileId }) => fileId)).toEqual([kept.fileId]);
  const smaller = await attach(limited.client, space.id, objectId, bytesOf(2_000_000, 3));
  await limited.stop();

  await using again = await startServer({ dataDir: root.path });
  const large = await attach(again.client, space.id, objectId, bytesOf(6_000_000, 2));
  for (const [info, size, seed] of [
    [kept, 1_000_000, 1],
    [smaller, 2_000_000, 3],
    [large, 6_000_000, 2],
  ] as const) {
    const got = await content(again.client, space.id, info.fileId);
    expect(Buffer.compare(got.bytes, bytesOf(size, seed))).toBe(0);
  }
});
