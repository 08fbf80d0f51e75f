/** What a run costs is the same everywhere: run after run, and in the executable as in the source tree. */
import { afterAll, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { createTestPrograms } from "../support/server/program-runs.ts";
import { BINARY } from "../support/server/server.ts";

const RUNS = 1_000;
const AT_ONCE = 4;
const SOURCE = `export default async function main(args) {
  const seen = [];
  for (let i = 0; i < 20; i++) seen.push(JSON.stringify({ i, r: Math.random(), at: Date.now() }).length);
  const { n } = await svc.query({ n: seen.reduce((sum, one) => sum + one, 0) });
  const words = "the quick brown fox".replace(/o(\\w)/g, (_, next) => next.toUpperCase()).split(" ");
  log("seen", n);
  return { n, words, sorted: seen.sort((one, other) => other - one).slice(0, 3), big: String(3n ** 200n) };
}`;

const built = createTestPrograms(BINARY);
const fromSource = createTestPrograms();
afterAll(() => Promise.all([built.processes.close(), fromSource.processes.close()]));

rule(
  "[AGENT-10] the same source and answers take the same fuel and memory over a thousand runs of the executable, and from source",
  async () => {
    const first = await built.run({ source: SOURCE });
    // Of a copy: the matchers are written into what is matched, and then any run would equal it.
    expect(structuredClone(first)).toMatchObject({
      status: "ok",
      fuel: expect.any(Number),
      engine: expect.any(String),
    });
    expect(await fromSource.run({ source: SOURCE })).toEqual(first);
    for (let done = 0; done < RUNS; done += AT_ONCE)
      for (const end of await Promise.all(Array.from({ length: AT_ONCE }, () => built.run({ source: SOURCE }))))
        expect(end).toEqual(first);
  },
  120_000,
);
