import { expect, test } from "bun:test";
import { bytesToBase64Url } from "../../base/bytes.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";

test.each([0, 1, 2 ** 33, Number.MAX_SAFE_INTEGER])("the place at lamport %d comes back", (lamport) => {
  const id = new Uint8Array(32).fill(9);
  expect(decodeCursor(encodeCursor({ lamport, id }))).toEqual({ lamport, id });
});

test.each([
  ["text", "no cursor"],
  ["too short", bytesToBase64Url(new Uint8Array(39))],
  ["too long", bytesToBase64Url(new Uint8Array(41))],
  ["a lamport beyond the safe integers", bytesToBase64Url(new Uint8Array(40).fill(255))],
])("[API-1] %s is refused", (_what, text) => {
  expect(() => decodeCursor(text)).toThrow(
    expect.objectContaining({
      code: "request.invalid_field",
      details: { field: "cursor", reason: expect.any(String) },
    }),
  );
});
