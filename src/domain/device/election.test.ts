import { describe, expect, test } from "bun:test";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import type { Json } from "../../protocol/json.ts";
import { type DeviceRow, electActive, nextClaim } from "./election.ts";

const seed = runSeed("election");
const claim = (seq: Json, at: Json = 100): Json => ({ seq, at });
const row = (id: string, slugs: readonly string[], claims: Record<string, Json>): DeviceRow => ({
  id,
  apps: Object.fromEntries(slugs.map((slug) => [slug, { version: "1" }])),
  activeClaims: claims,
});
const active = (...rows: DeviceRow[]) => Object.fromEntries(electActive(rows));

describe("the election rule (DEV-2)", () => {
  const CASES: [rule: string, rows: DeviceRow[], active: Record<string, string>][] = [
    ["nobody, without rows", [], {}],
    ["nobody, without claims", [row("A", ["agent"], {})], {}],
    ["the one that claims", [row("A", ["agent"], { agent: claim(1) }), row("B", ["agent"], {})], { agent: "A" }],
    [
      "the highest seq",
      [row("A", ["agent"], { agent: claim(3) }), row("B", ["agent"], { agent: claim(2, 900) })],
      { agent: "A" },
    ],
    [
      "then the highest at",
      [row("B", ["agent"], { agent: claim(2, 7) }), row("A", ["agent"], { agent: claim(2, 8) })],
      { agent: "A" },
    ],
    [
      "then the largest peer id",
      [row("B", ["agent"], { agent: claim(2, 7) }), row("A", ["agent"], { agent: claim(2, 7) })],
      { agent: "B" },
    ],
    [
      "not one whose app is uninstalled",
      [row("A", [], { agent: claim(9) }), row("B", ["agent"], { agent: claim(1) })],
      { agent: "B" },
    ],
    [
      "presence of the slug is enough",
      [{ id: "A", apps: { agent: true }, activeClaims: { agent: claim(9) } }],
      { agent: "A" },
    ],
    [
      "each app by itself",
      [row("A", ["x", "y"], { x: claim(1), y: claim(1) }), row("B", ["y"], { y: claim(2) })],
      { x: "A", y: "B" },
    ],
    [
      "seq at its bounds",
      [row("A", ["x"], { x: claim(2 ** 53) }), row("B", ["x"], { x: claim(2 ** 53 - 1) })],
      { x: "A" },
    ],
    [
      "slugs that are names of the language",
      [row("A", ["constructor"], { constructor: claim(1) })],
      { constructor: "A" },
    ],
    ["no inherited apps", [row("A", [], { constructor: claim(1), toString: claim(1) })], {}],
  ];
  for (const [rule, rows, expected] of CASES) {
    test(rule, () => {
      expect(active(...rows)).toEqual(expected);
      expect(active(...[...rows].reverse())).toEqual(expected);
    });
  }

  const MALFORMED: Json[] = [
    ...[null, true, "1", 5, [], {}, [1, 2]],
    ...[0, -1, 1.5, "2", null, true, 2 ** 53 + 2, 1e300, Number.NaN].map((seq) => claim(seq)),
    ...["100", null, Number.NaN, Number.POSITIVE_INFINITY, {}].map((at) => claim(9, at)),
    { seq: 9 },
    { at: 9 },
  ];
  for (const malformed of MALFORMED) {
    test(`a claim ${JSON.stringify(malformed)} reads as absent`, () => {
      const rows = [row("A", ["x"], { x: malformed }), row("B", ["x"], { x: claim(1) })];
      expect(active(...rows)).toEqual({ x: "B" });
      expect(nextClaim(rows, "x", 0).seq).toBe(2);
    });
  }

  test("rows of any shape are read", () => {
    const rows: DeviceRow[] = [
      { id: "A" },
      { id: "B", apps: null, activeClaims: [] },
      { id: "C", apps: "x", activeClaims: { x: claim(1) } },
      { id: "D", apps: { x: {} }, activeClaims: "y" },
    ];
    expect(active(...rows)).toEqual({});
    expect(nextClaim(rows, "x", 0).seq).toBe(2);
  });

  test("every order of the rows gives the same winner", () => {
    const rng = createRng(seed);
    for (let i = 0; i < 500; i++) {
      const rows = Array.from({ length: 6 }, (_, index) =>
        row(`P${index}`, rng.chance(0.8) ? ["x"] : [], { x: claim(rng.int(0, 3), rng.int(0, 2)) }),
      );
      expect(active(...rng.shuffle(rows))).toEqual(active(...rows));
    }
  });
});

describe("a new claim (DEV-2)", () => {
  test("begins at 1, in whole seconds", () => {
    expect(nextClaim([], "x", 1_700_000_000_999)).toEqual({ seq: 1, at: 1_700_000_000 });
  });

  test("is one above every visible claim, installed or not, and wins", () => {
    const rows = [row("A", [], { x: claim(7) }), row("B", ["x"], { x: claim(4), y: claim(50) })];
    const mine = nextClaim(rows, "x", 200_000);
    expect(mine).toEqual({ seq: 8, at: 200 });
    expect(active(...rows, row("C", ["x"], { x: { ...mine } }))).toMatchObject({ x: "C" });
  });

  test("at the end of the numbers ties, and is later", () => {
    const rows = [row("Z", ["x"], { x: claim(2 ** 53, 5) })];
    const mine = nextClaim(rows, "x", 6000);
    expect(mine).toEqual({ seq: 2 ** 53, at: 6 });
    expect(active(...rows, row("A", ["x"], { x: { ...mine } }))).toEqual({ x: "A" });
  });
});
