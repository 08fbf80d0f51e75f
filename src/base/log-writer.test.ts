import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogFormat, LogLevel } from "./log.ts";
import { createLog, fileOutput, stderrOutput } from "./log-writer.ts";

function collect(format: LogFormat, level: LogLevel = "debug") {
  const lines: string[] = [];
  const clock = { nowMs: () => Date.UTC(2026, 0, 31, 9, 30) };
  return { lines, log: createLog({ level, clock, outputs: [{ format, write: (text) => lines.push(text) }] }) };
}

test("[SRV-11] plaintext: time, level, message, fields, one line", () => {
  const { lines, log } = collect("plaintext");
  log.child({ requestId: "r1" }).info("served\nforged 2026", { path: "/v1/x y", count: 3, none: undefined });
  expect(lines).toEqual(['2026-01-31T09:30:00.000Z INFO  served\\nforged 2026 requestId=r1 path="/v1/x y" count=3\n']);
});

test("[SRV-11] json: one object a line, errors with stack and cause", () => {
  const { lines, log } = collect("json");
  log.error("failed", {
    err: new Error("outer", { cause: new Error("inner") }),
    n: 1n,
    bytes: new Uint8Array(3),
    level: "mine",
  });
  const line = JSON.parse(lines[0] as string);
  expect(line).toMatchObject({
    time: "2026-01-31T09:30:00.000Z",
    level: "error",
    message: "failed",
    n: "1",
    bytes: "3 bytes",
    level_: "mine",
  });
  expect(line.err.stack).toContain("caused by Error: inner");
});

test("[SRV-11] colorized marks the level; the stack follows indented", () => {
  const { lines, log } = collect("colorized");
  log.warn("careful", { err: new Error("why") });
  expect(lines[0]).toContain("\x1b[33mWARN \x1b[0m careful");
  expect(lines[0]).toContain("\n    Error: why");
});

test("[SRV-11] lines below the level are not written", () => {
  const { lines, log } = collect("plaintext", "warn");
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.child({}).error("d");
  expect(lines.map((line) => line.trim().split(" ").at(-1))).toEqual(["c", "d"]);
  expect([log.enabled("info"), log.enabled("warn")]).toEqual([false, true]);
});

test("[SRV-11] values under secret names never reach a line", () => {
  for (const format of ["plaintext", "json", "colorized"] as const) {
    const { lines, log } = collect(format);
    log.info("auth", {
      mnemonic: "legal winner",
      body: { passkey: "hunter2", deep: [{ inviteToken: "tok123" }] },
      readKey: "k3y",
    });
    expect(lines[0]).not.toMatch(/legal|hunter2|tok123|k3y/);
  }
});

test("[SRV-11] output paths are appended to, 0600, without colours", () => {
  const dir = mkdtempSync(join(tmpdir(), "svc-log-"));
  try {
    const path = join(dir, "svc.log");
    for (const message of ["one", "two"]) {
      using output = fileOutput(path, "colorized");
      createLog({ level: "info", clock: { nowMs: () => 0 }, outputs: [output] }).info(message);
    }
    expect(readFileSync(path, "utf8")).toBe("1970-01-01T00:00:00.000Z INFO  one\n1970-01-01T00:00:00.000Z INFO  two\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("[SRV-11] NO_COLOR takes the colours off stderr", () => {
  expect(stderrOutput("colorized", { NO_COLOR: "1" }).format).toBe("plaintext");
  expect(stderrOutput("colorized", {}).format).toBe("colorized");
  expect(stderrOutput("json", { NO_COLOR: "1" }).format).toBe("json");
});
