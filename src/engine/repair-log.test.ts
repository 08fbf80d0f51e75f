import { expect, test } from "bun:test";
import { holdTimers } from "../../test/support/held-timers.ts";
import type { SpaceId } from "../base/ids.ts";
import { type Log, silentLog } from "../base/log.ts";
import { createRepairLog } from "./repair-log.ts";

/** A repair log that is opened as often as it is called, upon what the ones before have stored. */
function world() {
  const stored = new Map<string, string>();
  const account = {
    repairs: (spaceId: string) => stored.get(spaceId),
    setRepairs: (spaceId: string, text: string) => void stored.set(spaceId, text),
  };
  let nowMs = Date.parse("2026-01-31T09:30:00.000Z");
  const logged: string[] = [];
  const log: Log = { ...silentLog, warn: (message) => void logged.push(message) };
  return { logged, open: () => createRepairLog({ account, clock: { nowMs: () => nowMs++ }, log }) };
}
const [space, other] = ["space" as SpaceId, "other" as SpaceId];

test("[STORE-10] the latest hundred cases of a space are shown, newest first, with how many there were, after a restart too", () => {
  const { open } = world();
  const first = open();
  for (let n = 0; n < 70; n++) first.note(space, "record.row", { recordId: `r${n}`, id: Uint8Array.of(n) });
  first.note(other, "object.links", { table: "links" });
  first.close();
  const second = open();
  for (let n = 70; n < 150; n++) second.note(space, "record.row", { recordId: `r${n}` });
  second.close();

  const { count, latest } = open().of(space);
  expect([count, latest.length]).toEqual([150, 100]);
  expect(latest.map(({ facts }) => facts["recordId"])).toEqual(Array.from({ length: 100 }, (_, at) => `r${149 - at}`));
  expect(latest.at(-1)).toEqual({
    at: "2026-01-31T09:30:00.050Z",
    what: "a record was damaged on the disk: it was made anew from its changes",
    facts: { recordId: "r50", id: '"32"' },
  });
  expect(open().of(other)).toMatchObject({ count: 1, latest: [{ facts: { table: "links" } }] });
});

test("[STORE-10] what was found in the last half second before a crash stands in the log alone", () => {
  using timers = holdTimers();
  const { logged, open } = world();
  const crashed = open();
  crashed.note(space, "root.bytes", {});
  timers.pass(499);
  expect(open().of(space).count).toBe(0);
  crashed.note(other, "object.links", {});
  timers.pass(1);
  crashed.note(space, "space.counts", {});
  const next = open();
  expect([space, other].map((each) => next.of(each).latest.map(({ what }) => what))).toEqual([
    [expect.stringMatching(/^a root/)],
    [expect.stringMatching(/^links/)],
  ]);
  expect(logged).toEqual([
    expect.stringMatching(/^a root/),
    expect.stringMatching(/^links/),
    expect.stringMatching(/^counts/),
  ]);
});

test("[STORE-10] what nobody can set right here is an error in the log, what was lost is said in words", () => {
  const lines: unknown[] = [];
  const line = (level: string) => (message: string, fields?: unknown) => void lines.push([level, message, fields]);
  const account = { repairs: () => undefined, setRepairs() {} };
  const log: Log = { ...silentLog, warn: line("warn"), error: line("error") };
  const repairs = createRepairLog({ account, clock: { nowMs: () => 0 }, log });
  repairs.note(space, "record.row", { recordId: "r", lost: "local_fields" });
  repairs.note(space, "space.database", { table: "rows" });
  const lost = "the fields that only this device had";
  expect(lines).toEqual([
    ["warn", expect.stringContaining("a record was damaged"), { recordId: "r", lost, spaceId: space }],
    ["error", expect.stringContaining("move it away"), { table: "rows", spaceId: space }],
  ]);
  expect(repairs.of(space).latest.map(({ facts }) => facts)).toEqual([{ table: "rows" }, { recordId: "r", lost }]);
  repairs.close();
});
