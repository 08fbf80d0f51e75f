import { expect, test } from "bun:test";
import { targetOf } from "../parse/global-flags.ts";
import { exitCodeOfStatus } from "./exit.ts";
import { fillPath } from "./http-client.ts";
import { redact } from "./redaction.ts";

test("ids become one encoded segment each", () => {
  expect(fillPath("/v1/spaces/:spaceId/objects/:objectId", { spaceId: "a/b", objectId: "ü?#%" })).toBe(
    "/v1/spaces/a%2Fb/objects/%C3%BC%3F%23%25",
  );
});

test.each(["", ".", ".."])("the id %p would name another route and is refused", (spaceId) => {
  expect(() => fillPath("/v1/spaces/:spaceId", { spaceId })).toThrow("<spaceId> cannot be");
});

test.each([
  [200, 0],
  [204, 0],
  [304, 2],
  [400, 1],
  [404, 1],
  [499, 1],
  [500, 2],
  [503, 2],
])("status %d ends in exit code %d", (status, exitCode) => {
  expect(exitCodeOfStatus(status)).toBe(exitCode as 0 | 1 | 2);
});

test("[CLI-1] secrets are taken out of what --verbose shows, at any depth", () => {
  const body = {
    mnemonic: "a b",
    passkey: "p",
    name: "n",
    list: [{ inviteToken: "t", push: { spaceKey: "k", encKey: "e", encKeyId: "i" } }],
  };
  expect(JSON.parse(redact(body))).toEqual({
    mnemonic: "<redacted>",
    passkey: "<redacted>",
    name: "n",
    list: [{ inviteToken: "<redacted>", push: { spaceKey: "<redacted>", encKey: "<redacted>", encKeyId: "i" } }],
  });
});

test("[CLI-3] the global flags have their defaults", async () => {
  const addr = "127.0.0.1:1";
  expect(await targetOf({ addr })).toEqual({ addr, source: undefined, timeoutMs: 30_000, verbose: false });
  expect(await targetOf({ addr: "[::1]:80", timeout: "250ms", verbose: true })).toEqual({
    addr: "[::1]:80",
    source: undefined,
    timeoutMs: 250,
    verbose: true,
  });
});

test.each([
  "7001",
  "host",
  "host:0",
  "host:65536",
  "http://127.0.0.1:1",
  "a b:1",
  "user@host:1",
  "host:1/path",
  ":7001",
  "",
])("--addr %p is refused", async (addr) => {
  await expect(targetOf({ addr })).rejects.toThrow("--addr takes host:port");
});

test.each(["30", "0s", "-1s", "forever", "600h0", "9999h"])("--timeout %p is refused", async (timeout) => {
  await expect(targetOf({ timeout })).rejects.toThrow("--timeout takes a duration");
});
