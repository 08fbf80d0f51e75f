import { expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../test/support/scratch.ts";
import { createAccount } from "../../test/support/worlds/acl-world.ts";
import { createOpenGenesis, openEngine } from "../../test/support/worlds/open-engine.ts";

const NOTES = { name: "notes", idRule: "user" as const };

test("[SYNC-8] two copies of a device that write in the same millisecond make two objects", async () => {
  using dir = scratchDir("svc-copies");
  const genesis = createOpenGenesis();
  const account = createAccount();
  const open = (name: string) => openEngine(dir.path, name, genesis, account, [NOTES], () => 1_000);
  const create = (engine: ReturnType<typeof open>, text: string) =>
    engine.write((tx) => {
      const object = tx.createObject();
      const ops = [{ type: "$set" as const, path: "text", value: text }];
      tx.append(object, { dataset: NOTES.name, records: [{ id: "a", upsert: true, ops }] }, NOTES);
      return object.idText;
    });
  const device = open("device");
  await create(device, "before");
  await device.close();
  cpSync(join(dir.path, "device.db"), join(dir.path, "copy.db"));
  const copies = [open("device"), open("copy")];
  const ids = await Promise.all(copies.map((engine, index) => create(engine, `by copy ${index}`)));
  expect(new Set(ids).size).toBe(2);
  for (const engine of copies) await engine.close();
});
