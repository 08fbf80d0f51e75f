import { expect, test } from "bun:test";
import { readLinkTarget } from "./link-target.ts";

test("[PAGE-6] objects and the web are reached, nothing else is", () => {
  expect(readLinkTarget("svc://bafyobject")).toEqual({ objectId: "bafyobject" });
  expect(readLinkTarget("https://example.com/a?b#c")).toEqual({ url: "https://example.com/a?b#c" });
  expect(readLinkTarget("mailto:ada@example.com")).toEqual({ url: "mailto:ada@example.com" });
  for (const other of [
    "javascript:alert(1)",
    "JAVASCRIPT:alert(1)",
    " javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "/v1/shutdown",
    "#/spaces",
    "https:/evil",
    "svc://a/b",
    "svc://m/space/person",
    "",
  ]) {
    expect([other, readLinkTarget(other)]).toEqual([other, undefined]);
  }
});
