/** What an attack may cost, as docs/security.md says: tests measure against the table that people read. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

interface AttackBounds {
  readonly diskMiB: number;
  readonly memoryMiB: number;
  readonly processorS: number;
  /** Statements and rows of databases in one turn of the loop; infinite where the table has none. */
  readonly turnWork: number;
  /** Seconds of a processor that a turn of a server's loop takes; infinite where the table has none. */
  readonly turnS: number;
}

const TABLE = resolve(import.meta.dir, "../../../docs/security.md");

/** The row of whoever attacks. Throws when the table has none. */
export function boundsOf(by: string): AttackBounds {
  const line = readFileSync(TABLE, "utf8")
    .split("\n")
    .find((text) => text.startsWith(`| ${by} |`));
  const [diskMiB, memoryMiB, processorS, turnWork, turnS] = line?.split("|").slice(2, 7).map(Number) ?? [];
  if (!diskMiB || !memoryMiB || !processorS) throw new Error(`docs/security.md does not say what ${by} may cost`);
  const orNone = (bound: number | undefined) => bound || Number.POSITIVE_INFINITY;
  return { diskMiB, memoryMiB, processorS, turnWork: orNone(turnWork), turnS: orNone(turnS) };
}
