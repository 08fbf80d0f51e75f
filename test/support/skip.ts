/** The one way to leave a test out: with a reason, which the suite prints. */
import { test } from "bun:test";
import { titleWithReason } from "./skip-reason.ts";

type TestBody = () => void | Promise<void>;
type DeclareTest = (title: string, body: TestBody, timeoutMs?: number) => void;

/**
 * Where skips are refused, what a test needs must be there. The suite sets TEST_SKIPS for the files it starts; a file
 * that is run alone goes by CI.
 */
const skipsRefused =
  (process.env["TEST_SKIPS"] ?? (process.env["CI"] === "true" ? "refused" : "allowed")) === "refused";

/**
 * Returns `test` itself if `condition` holds. Otherwise the tests declared with it are skipped for `reason` (what is
 * absent on this machine, without brackets), or in CI fail for it.
 */
export function skipUnless(condition: boolean, reason: string): DeclareTest {
  if (condition) return (title, body, timeoutMs) => test(title, body, timeoutMs);
  if (!skipsRefused) return (title, body) => test.skip(titleWithReason(title, reason), body);
  return (title) =>
    test(title, () => {
      throw new Error(`Nothing is skipped in CI, and this test needs what is missing: ${reason}`);
    });
}
