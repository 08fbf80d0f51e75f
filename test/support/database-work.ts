/** What is asked of databases of this process without a pause: statements, and rows that they answer with. */
import { Database, type Statement } from "bun:sqlite";

export interface DatabaseWork extends Disposable {
  /** The most in one turn of the loop since the last `restart`, and all of it. */
  read(): { most: number; all: number };
  restart(): void;
}

type Calls = Record<"run" | "get" | "all" | "values", (...parameters: unknown[]) => unknown>;

/** Counts from now on, of databases that are opened while it counts. */
export function countDatabaseWork(): DatabaseWork {
  const { query, prepare } = Database.prototype;
  const counted = new WeakSet<object>();
  let turn = 0;
  let most = 0;
  let all = 0;

  const add = (units: number): void => {
    turn += units;
    all += units;
    most = Math.max(most, turn);
  };
  const count = <T extends Statement>(statement: T): T => {
    if (counted.has(statement)) return statement;
    counted.add(statement);
    const calls = statement as unknown as Calls;
    for (const name of ["run", "get", "all", "values"] as const) {
      const call = calls[name];
      calls[name] = function (this: Calls, ...parameters) {
        const answer = call.apply(this, parameters);
        add(1 + (Array.isArray(answer) && name !== "get" ? answer.length : 0));
        return answer;
      };
    }
    return statement;
  };
  Database.prototype.query = function (this: Database, sql: string) {
    return count(query.call(this, sql));
  } as typeof query;
  Database.prototype.prepare = function (this: Database, ...given: Parameters<typeof prepare>) {
    return count(prepare.apply(this, given));
  } as typeof prepare;
  let next = setImmediate(function turnOver() {
    turn = 0;
    next = setImmediate(turnOver);
  });
  return {
    read: () => ({ most, all }),
    restart() {
      turn = 0;
      most = 0;
      all = 0;
    },
    [Symbol.dispose]() {
      clearImmediate(next);
      Object.assign(Database.prototype, { query, prepare });
    },
  };
}
