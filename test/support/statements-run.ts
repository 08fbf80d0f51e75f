/** Which statements are run on databases of this process, and how SQLite plans them. */
import { Database, type Statement } from "bun:sqlite";

export interface StatementsRun extends Disposable {
  /** Steps of the plans of what was run since the last call that go over a whole table, or a whole index of it. `path`: of such a database. */
  scans(path: string): string[];
}

/** Notes them from now on, of databases that are opened while it does. */
export function noteStatements(): StatementsRun {
  const { query } = Database.prototype;
  const noted = new WeakSet<object>();
  const run = new Set<string>();
  Database.prototype.query = function (this: Database, sql: string) {
    const statement = query.call(this, sql);
    if (noted.has(statement)) return statement;
    noted.add(statement);
    const calls = statement as unknown as Record<string, (...parameters: unknown[]) => unknown>;
    for (const name of ["run", "get", "all", "values"]) {
      const call = calls[name]!;
      calls[name] = function (this: Statement, ...parameters) {
        run.add(sql);
        return call.apply(this, parameters);
      };
    }
    return statement;
  } as typeof query;
  return {
    scans(path) {
      using db = new Database(path, { readonly: true });
      const steps = [...run].flatMap((sql) =>
        db
          .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
          .all()
          .filter(({ detail }) => detail.startsWith("SCAN "))
          .map(({ detail }) => `${detail}: ${sql}`),
      );
      run.clear();
      return steps;
    },
    [Symbol.dispose]: () => void Object.assign(Database.prototype, { query }),
  };
}
