/** The ways to leave a test out: with a reason, which the suite prints. */
import { describe, test } from "bun:test";
import { titleWithReason } from "./suite/skip-reason.ts";

type TestBody = () => void | Promise<void>;
type DeclareGroup = (title: string, body: () => void) => void;
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
  if (condition || !skipsRefused) return skipUnlessGiven(condition, reason);
  return (title) => test(title, () => refuse(reason));
}

/** The same for what the project cannot bring along, so that it is skipped, with its reason, in CI too. */
export function skipUnlessGiven(condition: boolean, reason: string): DeclareTest {
  if (condition) return (title, body, timeoutMs) => test(title, body, timeoutMs);
  return (title, body) => test.skip(titleWithReason(title, reason), body);
}

/** `skipUnless` for a whole `describe`. */
export function skipGroupUnless(condition: boolean, reason: string): DeclareGroup {
  if (condition) return (title, body) => describe(title, body);
  if (!skipsRefused) return (title, body) => describe.skip(titleWithReason(title, reason), body);
  return (title) => describe(title, () => test("has what it needs", () => refuse(reason)));
}

function refuse(reason: string): never {
  throw new Error(`Nothing is skipped in CI, and this test needs what is missing: ${reason}`);
}
