/**
 * The walks of docs/architecture.md are what a server goes through: it runs from its sources, every function of which notes
 * its file while a write is answered, or a change comes from the LAN.
 */
import { expect } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../support/client.ts";
import { type Device, startDevice, statusOf } from "../../support/devices.ts";
import { createCollection, createSpace, openCollection, setFields } from "../../support/fixtures.ts";
import { rule } from "../../support/rule.ts";
import { type ScratchDir, scratchDir } from "../../support/scratch.ts";

const ROOT = join(import.meta.dir, "../../..");
const PRELOAD = join(ROOT, "test/support/trace-preload.ts");

/** Nothing that comes of itself. */
const QUIET = { SVC_SYNC_INTERVAL: "1h", SVC_INDEX_ENABLED: "false" };
const FROM_SOURCES = { binary: join(ROOT, "cli/main.ts"), wrapper: [process.execPath] };

/** A server whose trace goes to a file. */
const startTraced = (dir: ScratchDir, mnemonic?: string): Promise<Device> =>
  startDevice({
    lan: true,
    binary: join(ROOT, "cli/main.ts"),
    wrapper: [process.execPath, "--preload", PRELOAD],
    env: { ...QUIET, TRACE_FILE: join(dir.path, "trace.json") },
    ...(mnemonic === undefined ? {} : { mnemonic }),
  });

async function traceOf({ server }: Device, dir: ScratchDir, run: () => Promise<unknown>): Promise<string[]> {
  const path = join(dir.path, "trace.json");
  server.signal("SIGUSR2");
  await until(() => existsSync(`${path}.begun`), "the trace to begin");
  rmSync(`${path}.begun`);
  await run();
  server.signal("SIGUSR2");
  await until(() => existsSync(path), "the trace");
  const files = JSON.parse(readFileSync(path, "utf8")) as string[];
  rmSync(path);
  return files;
}

/** Until nothing of what was done before is under way: in a while no round begins. */
const untilQuiet = (device: Device, dir: ScratchDir): Promise<void> =>
  until(
    async () => !(await traceOf(device, dir, () => Bun.sleep(500))).includes("src/sync/round-scheduler.ts"),
    "the server to be quiet",
    20_000,
  );

/** The files that the architecture names under a heading, in ten lines, each once. */
function namedUnder(heading: string): string[] {
  const text = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
  const section = text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  const lines = section.split("\n").filter((line) => /^\d+\. /.test(line));
  expect(lines).toHaveLength(10);
  const files = lines.flatMap((line) => [...line.matchAll(/`([a-z0-9/-]+\.ts)`/g)].map(([, file]) => `src/${file}`));
  expect(new Set(files).size).toBe(files.length);
  return files;
}

/** What is named was entered, and first in that order. */
function expectWalk(heading: string, entered: readonly string[]): void {
  const named = namedUnder(heading);
  expect(entered.filter((file) => named.includes(file))).toEqual(named);
}

rule(
  "[walk] a write and a change from the LAN go through the files that the architecture names, in that order",
  async () => {
    using dir = scratchDir("svc-walk");
    await using first = await startTraced(dir);
    const { client } = first.server;
    const space = await createSpace(client);
    const collection = await createCollection(client, space.id);
    const set = ({ server }: Device, text: string) =>
      openCollection(server.client, collection).modify([setFields("record", { s: text })]);
    await set(first, "before");
    await untilQuiet(first, dir);
    const write = await traceOf(first, dir, () => set(first, "traced"));
    expectWalk("A local write", write);
    await using second = await startDevice({ lan: true, mnemonic: first.mnemonic, env: QUIET, ...FROM_SOURCES });
    const textAt = async ({ server }: Device) => {
      const reply = await server.client.request("POST", `/v1/spaces/${space.id}/query`, { body: collection.target });
      return reply.text;
    };
    const isSynced = async () => (await statusOf(first, space.id)).state === "synced";
    await until(async () => (await textAt(second)).includes("traced"), "the second device", 30_000);
    await until(isSynced, "synced", 30_000);
    await untilQuiet(first, dir);
    const inbound = await traceOf(first, dir, async () => {
      await set(second, "from afar");
      await until(async () => (await textAt(first)).includes("from afar"), "the change at the first", 20_000);
      await until(isSynced, "synced again", 20_000);
    });
    expectWalk("A change from the LAN", inbound);
  },
  60_000,
);
