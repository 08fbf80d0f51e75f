import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { SvcError } from "../protocol/errors.ts";
import { declaredErrors } from "./declared-errors.ts";
import { textOfRecords } from "./reply/records-response.ts";
import { JsonRecords, JsonText, Reply } from "./reply/reply.ts";
import type { Route } from "./route.ts";
import "./schema/schema-formats.ts";

/**
 * Checks a route against what it declares. Throws plain errors, which the caller gets as `internal` and the log in full.
 */
export interface ReplyCheck {
  result(result: unknown, successStatus: number): void;
  /** Returns what was thrown, or an error that says that the route does not declare it. */
  error(thrown: unknown): unknown;
}

export function createReplyCheck(route: Route): ReplyCheck {
  const name = `${route.method} ${route.path}`;
  const checks = new Map<number, TypeCheck<TSchema> | undefined>();
  for (const [status, { schema }] of Object.entries(route.responses)) {
    checks.set(Number(status), schema ? TypeCompiler.Compile(schema) : undefined);
  }
  const declared = new Set(declaredErrors(route).map(([code, status]) => `${code} ${status}`));

  return {
    result(result, successStatus) {
      const { status, value } = unwrap(result, successStatus);
      if (!checks.has(status)) throw new Error(`${name} answered ${status}, which it does not declare`);
      if (result instanceof Response) return;
      const check = checks.get(status);
      if (!check) {
        if (value !== undefined) throw new Error(`${name} answered ${status} with a body it does not declare`);
        return;
      }
      // The value is checked as its JSON, which is what is sent: dates become strings, undefined properties vanish.
      const wire: unknown = value === undefined ? undefined : JSON.parse(JSON.stringify(value));
      const fault = check.Errors(wire).First();
      if (fault)
        throw new Error(`${name} answered ${status} against its schema at ${fault.path || "/"}: ${fault.message}`);
    },
    error(thrown) {
      if (thrown instanceof SvcError && !declared.has(`${thrown.code} ${thrown.status}`)) {
        return new Error(`${name} failed with ${thrown.code} (${thrown.status}), which it does not declare`, {
          cause: thrown,
        });
      }
      return thrown;
    },
  };
}

function unwrap(result: unknown, successStatus: number): { status: number; value: unknown } {
  if (result instanceof Reply) return unwrap(result.value, result.status);
  if (result instanceof JsonText) return { status: result.status ?? successStatus, value: JSON.parse(result.text) };
  if (result instanceof JsonRecords) return { status: successStatus, value: JSON.parse(textOfRecords(result)) };
  if (result instanceof Response) return { status: result.status, value: undefined };
  return { status: successStatus, value: result };
}
