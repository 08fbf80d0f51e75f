import type { SQLQueryBindings, Statement } from "bun:sqlite";

/**
 * Prepares a statement when it is first run. A space has more than two hundred statements, of which most openings run a few;
 * preparing all of them took longer than everything else that opening a space does. `beforeRun` may refuse a run by throwing.
 */
export function lazyStatement<Row, Params extends SQLQueryBindings[]>(
  prepare: () => Statement<Row, Params>,
  beforeRun?: () => void,
): Statement<Row, Params> {
  let prepared: Statement<Row, Params> | undefined;
  const made = (): Statement<Row, Params> => {
    prepared ??= prepare();
    return prepared;
  };
  const lazy: Pick<Statement<Row, Params>, "get" | "all" | "run" | "values" | "iterate" | "finalize"> = {
    get: (...params) => made().get(...params),
    all: (...params) => made().all(...params),
    run: (...params) => {
      beforeRun?.();
      return made().run(...params);
    },
    values: (...params) => made().values(...params),
    iterate: (...params) => made().iterate(...params),
    finalize: () => prepared?.finalize(),
  };
  return lazy as Statement<Row, Params>;
}
