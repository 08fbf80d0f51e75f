import type { SQLQueryBindings, Statement } from "bun:sqlite";

/**
 * Prepares a statement when it is first run. A space has more than two hundred statements, of which most openings run a few;
 * preparing all of them took longer than everything else that opening a space does. `beforeRun` may refuse a run by throwing;
 * `checkOf` makes what may refuse a row by throwing.
 */
export function lazyStatement<Row, Params extends SQLQueryBindings[]>(
  prepare: () => Statement<Row, Params>,
  beforeRun?: () => void,
  checkOf?: (prepared: Statement<Row, Params>) => (row: Row) => void,
): Statement<Row, Params> {
  let prepared: Statement<Row, Params> | undefined;
  const made = (): Statement<Row, Params> => {
    prepared ??= prepare();
    return prepared;
  };
  let check: ((row: Row) => void) | undefined;
  const checked = (row: Row): void => {
    check ??= checkOf!(made());
    check(row);
  };
  const lazy: Pick<Statement<Row, Params>, "get" | "all" | "run" | "values" | "iterate" | "finalize"> = {
    get(...params) {
      const row = made().get(...params);
      if (checkOf && row !== null) checked(row);
      return row;
    },
    all(...params) {
      const rows = made().all(...params);
      if (checkOf) for (const row of rows) checked(row);
      return rows;
    },
    run: (...params) => {
      beforeRun?.();
      return made().run(...params);
    },
    values: (...params) => made().values(...params),
    *iterate(...params) {
      for (const row of made().iterate(...params)) {
        if (checkOf) checked(row);
        yield row;
      }
    },
    finalize: () => prepared?.finalize(),
  };
  return lazy as Statement<Row, Params>;
}
