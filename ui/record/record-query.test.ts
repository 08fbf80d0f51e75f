import { describe, expect, test } from "bun:test";
import { readQueryText, toQueryBody } from "./record-query.ts";

describe("what the form says becomes a query body", () => {
  test("defaults give a sorted, limited window, which alone can be followed", () => {
    const text = readQueryText(new URLSearchParams(), "-modifiedAt");
    expect(toQueryBody(text)).toEqual({ sort: ["-modifiedAt"], limit: 100 });
  });

  test("filter, several sort keys and a limit are taken over", () => {
    const params = new URLSearchParams({ filter: '{"a":{"$gt":1}}', sort: " -a, b ,", limit: "7" });
    expect(toQueryBody(readQueryText(params, "id"))).toEqual({
      filter: { a: { $gt: 1 } },
      sort: ["-a", "b"],
      limit: 7,
    });
  });

  test.each(["0", "-1", "x", ""])("the limit %p becomes the default", (limit) => {
    expect(toQueryBody({ filter: "", sort: "", limit })).toEqual({ sort: ["id"], limit: 100 });
  });

  test("a filter that is no JSON is refused with its reason", () => {
    expect(() => toQueryBody({ filter: "{a:1}", sort: "", limit: "" })).toThrow("not valid JSON");
  });
});
