import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { refusedAs } from "./errors.ts";
import { REFUSAL_CODES, refusal, refusalText } from "./refusals.ts";

const ROOT = join(import.meta.dir, "../..");

describe("words are made of a code and its facts", () => {
  test("without facts, with them, and with the path that it is about", () => {
    expect(refusalText(refusal("record.deleted"))).toBe("the record is deleted");
    const unknown = refusal("field.unknown", { field: "pears" });
    expect(unknown).toEqual({ code: "field.unknown", facts: { field: "pears" } });
    expect(refusalText(unknown)).toBe("pears is no field of this dataset");
    expect(refusalText({ ...refusal("path.empty_segment"), at: "a..b" })).toBe("a..b: a segment of the path is empty");
  });

  test("a fact that is not told is not missed", () => {
    expect(refusalText(refusal("field.scope", { scope: "derived" }))).toBe("the field is derived");
    expect(refusalText(refusal("field.scope", { field: "at", scope: "derived" }))).toBe("at is derived");
  });

  test("an error words its reason, and what is said beside it", () => {
    const why = refusal("field.unknown", { field: "pears" });
    const whole = refusal("write.refused", { dataset: "fruit", why });
    expect(refusedAs("dataset.validation", { dataset: "fruit" }, whole, { reason: why }).toBody().error).toEqual({
      code: "dataset.validation",
      message: "The dataset fruit refuses the change: pears is no field of this dataset",
      details: { dataset: "fruit", reason: "pears is no field of this dataset" },
    });
    expect(refusedAs("network.unavailable", undefined, refusal("network.lost")).toBody().error).not.toHaveProperty(
      "details",
    );
  });
});

test("every code of the table is said somewhere", async () => {
  const glob = new Bun.Glob("src/**/*.ts");
  let said = "";
  for await (const path of glob.scan({ cwd: ROOT }))
    if (!path.endsWith(".test.ts") && !/protocol\/(refusals|[a-z]+-words)\.ts$/.test(path))
      said += await Bun.file(join(ROOT, path)).text();
  expect(REFUSAL_CODES.filter((code) => !said.includes(`"${code}"`))).toEqual([]);
});
