import { Database, type Statement } from "bun:sqlite";
import { createEvents } from "../../base/events.ts";
import { MistypedValueError, mistypedColumn } from "./column-types.ts";
import { lazyStatement } from "./lazy-statement.ts";

/** A write has run more statements than it may in this batch; see `CommitQueue`. */
export class OutgrownError extends Error {
  constructor() {
    super("the write is too large for a batch that others share");
  }
}

/**
 * A connection that finalises its statements when it is closed. SQLite keeps a closed database's files open until the last
 * of its statements is gone; left to the garbage collector that took minutes, and three descriptors a space.
 */
export class OwnDatabase extends Database {
  /** One in memory that holds what `serialize` gave of another. */
  static ofBytes(bytes: Uint8Array): OwnDatabase {
    // Its types speak of a file's name alone; `Database.deserialize` calls it like this.
    return new OwnDatabase(bytes as never, { readwrite: true, create: true });
  }

  readonly #statements = new Set<Statement>();

  override prepare: Database["prepare"] = (...args: Parameters<Database["prepare"]>) => {
    const statement = super.prepare(...args);
    const finalize = statement.finalize.bind(statement);
    statement.finalize = () => {
      this.#statements.delete(statement);
      finalize();
    };
    this.#statements.add(statement);
    return statement as never;
  };

  /** Whether statements are prepared when they are first run: what does not fit the tables would show only then. */
  preparesLate = false;

  /** How many more statements may be run; the one after them throws OutgrownError. */
  runsLeft = Number.POSITIVE_INFINITY;

  /** Counts statements as run: a statement that does the work of several is as many. */
  spend(runs: number): void {
    this.runsLeft -= runs;
    if (this.runsLeft < 0) throw new OutgrownError();
  }

  readonly #spendRun = (): void => this.spend(1);

  readonly #events = createEvents<{ mistyped: [] }>();

  /**
   * Adds a listener to be called when a value was read that is of another type than its column's, before that is thrown. Answers
   * how to stop.
   */
  onMistyped(listener: () => void): () => void {
    return this.#events.on("mistyped", listener);
  }

  readonly #typesOf = (statement: Statement<Record<string, unknown>>) => {
    const mistyped = mistypedColumn(statement);
    return (row: Record<string, unknown>): void => {
      const column = mistyped(row);
      if (column === undefined) return;
      this.#events.emit("mistyped");
      throw new MistypedValueError(this.filename, column);
    };
  };

  /** Of a database of ours, what it gives out is checked: values are of the types that its tables declare. */
  override query: Database["query"] = (sql: string) =>
    (this.preparesLate
      ? lazyStatement(() => super.query<Record<string, unknown>, []>(sql), this.#spendRun, this.#typesOf)
      : super.query(sql)) as never;

  override close(throwOnError?: boolean): void {
    for (const statement of [...this.#statements]) statement.finalize();
    super.close(throwOnError);
  }
}
