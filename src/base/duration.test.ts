import { expect, test } from "bun:test";
import { parseDurationMs } from "./duration.ts";

test.each([
  ["250ms", 250],
  ["30s", 30_000],
  ["5m", 300_000],
  ["24h", 86_400_000],
  ["1.5s", 1500],
  ["1m30s", 90_000],
  ["0s", 0],
])("[SRV-5] %s is %d ms", (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
});

test.each(["", "30", "s", "-5s", "5 s", "5S", "1e3s", "30s5", "9999999999999999h"])(
  "[SRV-5] %p is no duration",
  (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  },
);
