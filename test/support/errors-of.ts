import { SvcError } from "../../src/protocol/errors.ts";

/**
 * What a promise rejects with; undefined when it does not. `expect(…).rejects` would hold the event loop that the answer of a
 * worker comes through.
 */
export const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

/** The code of the error that a promise rejects with; `none` when it does not. */
export const codeOf = (promise: Promise<unknown>): Promise<string | undefined> =>
  promise.then(
    () => "none",
    (error: { code?: string }) => error.code,
  );

/** Code and details of what is refused. */
export function refusalOf(run: () => unknown): { code: string; details: unknown } {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof SvcError) return { code: thrown.code, details: thrown.details };
    throw thrown;
  }
  throw new Error("it was taken");
}
