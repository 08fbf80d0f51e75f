import { expect, test } from "bun:test";
import { join } from "node:path";
import { findGivenUpWords, readSources } from "./words.ts";

const found = (source: string, path = "src/a.ts"): string[] => findGivenUpWords(new Map([[path, source]]));

test.each([
  ["alone", "const told = 1;", "told: say notified"],
  ["as a part", "f(toldBefore);", "toldBefore: say notified"],
  ["in a constant", "const LACKS_TOLD = 1;", "LACKS_TOLD: say notified"],
  ["in a type", "interface CarrierState {}", "CarrierState: say transport"],
  ["behind a comment", "/* a */ ds(); // b", "ds: say dataset"],
])("a name with a word that was given up is found: %s", (_where, source, fault) => {
  expect(found(`\n${source}\n`)).toEqual([`src/a.ts:2 ${fault}`]);
});

test("plain English may stand in comments and texts, and other words that hold these letters", () => {
  expect(found("// told\n/* tells\n seldom */ const a = [\"told\", 'told', `told`];")).toEqual([]);
  expect(found("intelligence(toldest, adds, IDS, collation);")).toEqual([]);
});

test.each([
  ["a savepoint", "const place = begin();", "src/store/commit/commit-queue.ts", "place"],
  ["a part of a pipeline", "f(stagePlace);", "src/query/a.ts", "stagePlace"],
  ["a command's", "const placeOf = 1;", "cli/a.ts", "placeOf"],
  ["a record's in the log of rights", "acl.isPlaced(id);", "src/sync/session/a.ts", "isPlaced"],
  ["what lost its own", "const DISPLACED_WRITERS = 1;", "src/store/space-store.ts", "DISPLACED_WRITERS"],
])("a place is one on the network, and nothing else is: %s", (_where, source, path, name) => {
  expect(found(source, path)).toEqual([`${path}:1 ${name}: say position, or what it is`]);
});

test("what knows of the network's places may name them, and a test its own", () => {
  expect(found("placesOf(space); createPlaceTable(db);", "src/space/port/a.ts")).toEqual([]);
  expect(found("const places = createPlaceTable(db);", "src/store/space-store.ts")).toEqual([]);
  expect(found("replace(placeholder); // in place", "src/query/a.ts")).toEqual([]);
  expect(found("const placed = 1;", "test/scenario/a.test.ts")).toEqual([]);
});

test("a gate may plant faults, nobody else", () => {
  expect(found("const planted = 1;", "test/support/gates/a.test.ts")).toEqual([]);
  expect(found("const planted = 1;", "test/scenario/a.test.ts")).toHaveLength(1);
});

test("no name of the project holds a word that was given up", async () => {
  const sources = await readSources(join(import.meta.dir, "../../.."));
  expect(sources.size).toBeGreaterThan(1_000);
  expect(findGivenUpWords(sources)).toEqual([]);
});
