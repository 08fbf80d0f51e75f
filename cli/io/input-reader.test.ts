import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInputReader } from "./input-reader.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));
const goodPath = join(folder, "good.json");
const badPath = join(folder, "bad.json");
writeFileSync(goodPath, '{"from":"file"}');
writeFileSync(badPath, "{");

const reader = (stdin = "") => createInputReader(async () => stdin);

describe("[CLI-5] JSON flags", () => {
  test("take JSON in place, in a file, or on stdin", async () => {
    expect(await reader().json("--filter", '{"a":1}')).toEqual({ a: 1 });
    expect(await reader().json("--filter", `@${goodPath}`)).toEqual({ from: "file" });
    expect(await reader('["stdin"]').json("--filter", "-")).toEqual(["stdin"]);
    expect(await reader().jsonFile("--file", goodPath)).toEqual({ from: "file" });
    expect(await reader("3").jsonFile("--file", "-")).toBe(3);
  });

  test.each([
    ["{", "--filter is not valid JSON"],
    ["", "--filter is not valid JSON"],
    [`@${badPath}`, "bad.json) is not valid JSON"],
    [`@${folder}/absent`, "absent: ENOENT"],
    [`@${folder}`, "--filter cannot read"],
    ["-", "--filter (stdin) is not valid JSON"],
    ['{"n": [1, 1e999]}', "--filter holds a number beyond ±1.7976931348623157e+308"],
  ])("%p is refused", async (text, message) => {
    await expect(reader("nonsense").json("--filter", text)).rejects.toThrow(message);
  });

  test("only one of them reads stdin", async () => {
    const shared = reader("{}");
    await shared.json("--set", "-");
    await expect(shared.json("--filter", "-")).rejects.toThrow("--set and --filter both read stdin; only one may");
    expect(() => shared.claimStdin("<path>")).toThrow("both read stdin");
  });
});

describe("[CLI-5] secrets on stdin", () => {
  test("stand one a line, in the order of their flags", async () => {
    expect(await reader("one two\r\npass key \n").secretLines(["--mnemonic-stdin", "--passkey-stdin"])).toEqual([
      "one two",
      "pass key ",
    ]);
    expect(await reader("alone").secretLines(["--passkey-stdin"])).toEqual(["alone"]);
  });

  test("a missing line is refused by the flag that wanted it", async () => {
    await expect(reader("one\n").secretLines(["--mnemonic-stdin", "--passkey-stdin"])).rejects.toThrow(
      "--passkey-stdin found no line 2 on stdin",
    );
  });
});
