import { expect, test } from "bun:test";
import { join } from "node:path";
import { MOVES, type SpaceMove, statusAfter } from "./space-status.ts";

const REFERENCE = join(import.meta.dir, "../../../docs/reference/spaces.md");
const ALL_MOVES = Object.keys(MOVES) as SpaceMove[];

test("[SPACE-2] the moves are those of the table in the reference", async () => {
  const table = (await Bun.file(REFERENCE).text()).split("## Status of a row")[1]!;
  const rows = [...table.matchAll(/^\| (.+) \| .+ \| (\w+) \|$/gm)].slice(1);
  const documented = rows.flatMap(([, from, to]) => from!.split(", ").map((one) => `${one} to ${to}`));
  const made = ALL_MOVES.flatMap((move) => MOVES[move].from.map((one) => `${one} to ${MOVES[move].to}`));
  expect(documented.sort()).toEqual(made.sort());
});

test("[SPACE-2] nothing leads away from a final end, and a space that has ended meanwhile does not come in", () => {
  expect(ALL_MOVES.flatMap((move) => statusAfter(move, { status: "active", final: true }) ?? [])).toEqual([]);
  expect(statusAfter("cameIn", { status: "deleted" })).toBeUndefined();
  expect(statusAfter("cameIn", { status: "joining" })).toBe("active");
  expect(statusAfter("made", undefined)).toBe("active");
  expect(statusAfter("ended", {})).toBe("deleted");
});
