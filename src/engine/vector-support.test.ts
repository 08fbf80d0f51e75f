import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { probeVectorSupport } from "./vector-support.ts";

const accountDir = mkdtempSync(join(tmpdir(), "svc-vector-"));
afterAll(() => rmSync(accountDir, { recursive: true, force: true }));

test("[SRV-6] where vectors cannot be searched a warning says why, else none is logged", () => {
  const warnings: unknown[] = [];
  const log = { debug: () => {}, warn: (_message: string, fields: unknown) => warnings.push(fields) };
  const result = probeVectorSupport(accountDir, log as unknown as Log);
  expect(warnings).toEqual(result.loaded ? [] : [{ reason: result.reason }]);
});
