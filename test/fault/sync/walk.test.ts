/**
 * The walks of docs/architecture.md are what a server goes through: it runs from its sources, every function of which notes
 * its file, and who called it, while a write is answered, or a change comes from the LAN.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../../support/rule.ts";
import { type ScratchDir, scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, forceSynced, startDevice } from "../../support/server/devices.ts";
import { createCollection, createSpace, openCollection, setFields } from "../../support/server/fixtures.ts";

const ROOT = join(import.meta.dir, "../../..");
const PRELOAD = join(ROOT, "test/support/gates/trace-preload.ts");

/** No round comes of itself once those that something asked for have ended. */
const QUIET = { SVC_SYNC_INTERVAL: "1h", SVC_INDEX_ENABLED: "false" };
const FROM_SOURCES = { binary: join(ROOT, "cli/main.ts"), wrapper: [process.execPath] };

/** A server whose traces go to a file. */
interface Traced {
  readonly device: Device;
  readonly path: string;
}

async function startTraced(dir: ScratchDir, name: string, mnemonic?: string): Promise<Traced> {
  const path = join(dir.path, `${name}.json`);
  const device = await startDevice({
    ...FROM_SOURCES,
    ...(mnemonic === undefined ? {} : { mnemonic }),
    lan: true,
    wrapper: [process.execPath, "--preload", PRELOAD],
    startTimeoutMs: 60_000,
    env: { ...QUIET, TRACE_FILE: path },
  });
  return { device, path };
}

/** A file that was entered, from the visit of that number; of several calls by one visit one is told. */
interface Visit {
  readonly file: string;
  readonly from: number | null;
}

const filesOf = (visits: readonly Visit[]): string[] => [...new Set(visits.map(({ file }) => file))];

async function traceOf({ device, path }: Traced, run: () => Promise<unknown>): Promise<Visit[]> {
  device.server.signal("SIGUSR2");
  await until(() => existsSync(`${path}.begun`), "the server to be quiet", 60_000);
  rmSync(`${path}.begun`);
  await run();
  device.server.signal("SIGUSR2");
  await until(() => existsSync(path), "the trace");
  const visits = JSON.parse(readFileSync(path, "utf8")) as Visit[];
  rmSync(path);
  return visits;
}

/** With it a round turns from what is new here to what the peer keeps of ours. */
const ROUND_COUNTS = "src/sync/session/confirm.ts";

/** Whether a space's file holds a record with a text; to ask the server would be seen in its trace. */
function isStored(path: string, text: string): boolean {
  using db = new Database(path, { readonly: true });
  return db.query("SELECT 1 FROM rows WHERE instr(doc, ?) > 0").get(text) !== null;
}

/** Until nothing that a server does of itself is due or under way. */
const untilQuiet = (traced: Traced): Promise<unknown> => traceOf(traced, async () => {});

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

/**
 * Of each visit whether it reaches a further file of the walk. One that does not comes straight back: it looks something up or hands
 * something over.
 */
function leadingOn(visits: readonly Visit[], walk: ReadonlySet<string>): boolean[] {
  const leadsOn = visits.map(() => false);
  for (const { file, from } of visits)
    for (let at = from; walk.has(file) && at !== null; at = visits[at]!.from)
      if (visits[at]!.file !== file) leadsOn[at] = true;
  return leadsOn;
}

/** The files of a walk in the order in which they are entered first; one that never leads on where it is called first. */
function orderOf(visits: readonly Visit[], walk: ReadonlySet<string>): string[] {
  const leadsOn = leadingOn(visits, walk);
  const through = new Set(visits.flatMap(({ file }, no) => (leadsOn[no] ? [file] : [])));
  return filesOf(visits.filter(({ file }, no) => walk.has(file) && (leadsOn[no] || !through.has(file))));
}

/**
 * Which other files of the walk enter each file that leads on to one of them, whatever lies between. What comes from outside of
 * the walk (a request, bytes of a peer, a timer) is entered by none.
 */
function callersOf(visits: readonly Visit[], walk: ReadonlySet<string>): Map<string, Set<string>> {
  const leadsOn = leadingOn(visits, walk);
  const nearest: (string | undefined)[] = [];
  const callers = new Map<string, Set<string>>();
  visits.forEach(({ file, from }, no) => {
    const caller = from === null ? undefined : nearest[from];
    nearest.push(walk.has(file) ? file : caller);
    if (caller === undefined || caller === file || !leadsOn[no]) return;
    callers.set(file, (callers.get(file) ?? new Set()).add(caller));
  });
  return callers;
}

/** Which files of a walk come first in which order, and which files are entered from two of them. */
function checkWalk(heading: string, visits: readonly Visit[]) {
  const walk = new Set(namedUnder(heading));
  const again = [...callersOf(visits, walk)].flatMap(([file, by]) => (by.size > 1 ? [[file, [...by]] as const] : []));
  return { order: orderOf(visits, walk), again };
}

/**
 * Takes a trace until it is that walk, three times at most: what is named was entered, and first in that order, and no file was
 * entered from two of the named ones. What the devices say to each other besides (which spaces they share, what else is new) may fall
 * into a trace.
 */
async function expectWalk(heading: string, trace: (time: number) => Promise<readonly Visit[]>): Promise<void> {
  const found = async (time: number) => checkWalk(heading, await trace(time));
  const wanted = { order: namedUnder(heading), again: [] };
  let last = await found(0);
  for (let time = 1; time < 3 && !Bun.deepEquals(last, wanted); time++) last = await found(time);
  expect(last).toEqual(wanted);
}

test("who enters a file is told through whatever lies between, and a call that leads nowhere enters nothing", () => {
  const visits = [
    { file: "a", from: null },
    { file: "b", from: 0 },
    { file: "unnamed", from: 1 },
    { file: "c", from: 2 },
    { file: "tool", from: 3 },
    { file: "tool", from: 0 },
    { file: "b", from: 3 },
    { file: "unnamed", from: 6 },
    { file: "tool", from: 7 },
    { file: "c", from: 0 },
  ];
  const walk = new Set(["a", "b", "c", "tool"]);
  const callers = callersOf(visits, walk);
  expect([...callers].map(([file, by]) => [file, ...by])).toEqual([
    ["b", "a", "c"],
    ["unnamed", "b"],
    ["c", "b"],
  ]);
  expect(orderOf(visits, walk)).toEqual(["a", "b", "c", "tool"]);
});

rule(
  "a write and a change from the LAN go through the files that the architecture names, in that order, and enter none from two sides",
  async () => {
    using dir = scratchDir("svc-walk");
    const one = await startTraced(dir, "one");
    await using first = one.device;
    const { client } = first.server;
    const space = await createSpace(client);
    const collection = await createCollection(client, space.id);
    const set = ({ server }: Device, text: string) =>
      openCollection(server.client, collection).modify([setFields("record", { s: text })]);
    await set(first, "before");
    await expectWalk("A local write", () => traceOf(one, () => set(first, "traced")));
    const other = await startTraced(dir, "other", first.mnemonic);
    await using second = other.device;
    const textAt = async ({ server }: Device) => {
      const reply = await server.client.request("POST", `/v1/spaces/${space.id}/query`, { body: collection.target });
      return reply.text;
    };
    await until(async () => (await textAt(second)).includes("traced"), "the second device", 60_000);
    /**
     * Neither has a reason to ask the other: of what one got the other is notified, and makes a round. A forced one comes after all
     * notices that were sent before, on the same connection.
     */
    const untilBothQuiet = async () => {
      await forceSynced(first, space.id);
      await untilQuiet(one);
      await forceSynced(second, space.id);
      await untilQuiet(other);
    };
    const path = join(first.server.dataDir, first.accountId, "sdk", `${space.id}.db`);
    await expectWalk("A change from the LAN", async (time) => {
      await untilBothQuiet();
      const visits = await traceOf(one, async () => {
        await set(second, `from afar ${time}`);
        await until(() => isStored(path, `from afar ${time}`), "the change at the first", 60_000);
      });
      const end = visits.findIndex(({ file }) => file === ROUND_COUNTS);
      return end < 0 ? visits : visits.slice(0, end);
    });
  },
  150_000,
);
