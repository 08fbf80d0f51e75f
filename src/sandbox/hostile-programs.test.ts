import { afterAll, describe, expect, test } from "bun:test";
import { HOSTILE_PROGRAMS } from "../../test/support/hostile/hostile-programs.ts";
import { createTestPrograms } from "../../test/support/server/program-runs.ts";

const programs = createTestPrograms();
afterAll(() => programs.processes.close());

describe("[AGENT-9] programs that mean harm end by their own status, and the process goes on", () => {
  for (const [what, body, expected] of HOSTILE_PROGRAMS) {
    test(what, async () => {
      const source = `export default async function main(args, ctx) { ${body} }`;
      const end = await programs.run({ source });
      if (typeof expected === "string")
        expect([what, end.status, end.error]).toEqual([what, expected, expect.any(String)]);
      else
        expect({ status: end.status, value: JSON.parse(("value" in end && end.value) || "null") }).toEqual({
          status: "ok",
          value: expected.value,
        });
    }, 30_000);
  }
});
