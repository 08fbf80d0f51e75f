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

/** What is thrown as an error of the product; undefined when nothing is. */
export function faultOf(run: () => unknown): SvcError | undefined {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof SvcError) return thrown;
    throw thrown;
  }
  return undefined;
}

/** Code and details of what is refused. */
export function refusalOf(run: () => unknown): { code: string; details: unknown } {
  const fault = faultOf(run);
  if (!fault) throw new Error("it was taken");
  return { code: fault.code, details: fault.details };
}

/** Code, status and details with which a promise is refused. */
export async function rejectionOf(work: Promise<unknown>): Promise<{ code: string; status: number; details: unknown }> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof SvcError) return { code: thrown.code, status: thrown.status, details: thrown.details };
    throw thrown;
  }
  throw new Error("it was taken");
}
