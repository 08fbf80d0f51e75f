import { expect, test } from "bun:test";
import { RE2JS } from "re2js";
import { createRng } from "../../../test/support/rng.ts";
import { STEP_NS } from "./filter-match.ts";
import { regexSteps } from "./regex-steps.ts";

const IGNORE_CASE = RE2JS.CASE_INSENSITIVE;
/** As many as the dearest that a live window tries. */
const MOST = 1 << 24;
/** What a step may take beyond what is counted: the first tries of a process, collecting garbage, a slower machine. */
const SLACK = 4;

/** Patterns whose automaton comes to a new state at nearly every character of a text of these letters. */
const DEAR: readonly [source: string, flags: number, letters: string][] = [
  ["a[ab]{250}d", 0, "ab"],
  ["a[ab]{250}d", IGNORE_CASE, "ab"],
  ["a[ab]{20}[cd]", IGNORE_CASE, "ab"],
  ["a[^\\p{Greek}]{240}1", IGNORE_CASE, "ab"],
  ["\\p{Ll}\\p{L}{240}1", IGNORE_CASE, "aéЖ中ǆᾳ"],
  ["(?:\\pL|\\pN|\\pM|\\pP){900}1", IGNORE_CASE, "ab"],
  ["\\b\\pL(?:\\pL\\b|\\pL\\B){600}1", IGNORE_CASE, "aBäÄ"],
  ["(?:a[ab]{200}d|b[ab]{201}d|a[ab]{202}c|b[ab]{203}d)", IGNORE_CASE, "ab"],
];

test("[INDEX-5] [LIVE-3] what a pattern may take is counted for what it takes, however dear its steps are", () => {
  const rng = createRng(11);
  for (const [source, flags, letters] of DEAR) {
    const pattern = RE2JS.compile(source, flags);
    const chars = Math.floor(MOST / regexSteps(pattern, 1));
    // The end has what every match needs, so that the automaton is begun at all.
    const text = `${Array.from({ length: chars }, () => rng.pick([...letters])).join("")}1cd`;
    const before = process.cpuUsage();
    pattern.test(text);
    const { user, system } = process.cpuUsage(before);
    expect({ source, ns: (user + system) * 1_000 }).toSatisfy(
      ({ ns }) => ns < SLACK * STEP_NS * regexSteps(pattern, text.length),
    );
  }
}, 60_000);

test("[LIVE-3] what people look for is counted by its few states, also in a long text", () => {
  const chars = 1 << 20;
  for (const source of ["authentication failed", "^## ", "error.*timeout.*retry", "a\\.b\\[0\\]", "ab?c", "[0-9]{4}"])
    expect({ source, steps: regexSteps(RE2JS.compile(source), chars) }).toSatisfy(({ steps }) => steps < 2 * chars);
});

test("[LIVE-3] an automaton has no more states than are counted", () => {
  const rng = createRng(12);
  for (let round = 0; round < 300; round++) {
    const parts = Array.from({ length: rng.int(1, 4) }, () =>
      Array.from({ length: rng.int(0, 4) }, () => rng.pick(["a", "b", "k"])).join(""),
    );
    const source = `${rng.pick(["", "^"])}${parts.join(rng.pick([".*", ".+?", ".+"]))}${rng.pick(["", "$"])}`;
    const pattern = RE2JS.compile(source, rng.pick([0, IGNORE_CASE]));
    pattern.test(Array.from({ length: 5_000 }, () => rng.pick([..."abkK\u212a\n"])).join(""));
    const automaton = (pattern as unknown as { re2Input: { lazyDFA: { stateCount: number } | null } }).re2Input.lazyDFA;
    const counted = (regexSteps(pattern, 1e9) - 1e9) / (8 * pattern.programSize());
    expect({ source, built: automaton?.stateCount ?? 0 }).toSatisfy(({ built }) => built <= counted);
  }
});
