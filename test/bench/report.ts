/** The table of results: absolute figures, the ratio to the floor, the aim, and whether it was met. */

export interface Line {
  name: string;
  /** Absolute figures, with their units. */
  figures: string;
  ratio?: number;
  aim?: { atLeast?: number; atMost?: number; unit?: string };
  /** The figure that the aim is about, when it is no ratio. */
  value?: number;
}

export function isMet(line: Line): boolean {
  const value = line.value ?? line.ratio;
  if (!line.aim || value === undefined) return true;
  return value >= (line.aim.atLeast ?? -Infinity) && value <= (line.aim.atMost ?? Infinity);
}

export function renderTable(lines: readonly Line[]): string {
  const header = ["what", "ratio", "aim", "", "figures"];
  const rows = lines.map((line) => [
    line.name,
    line.ratio === undefined ? "" : line.ratio.toFixed(2),
    aimText(line),
    line.aim ? (isMet(line) ? "met" : "MISSED") : "",
    line.figures,
  ]);
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const render = (row: string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  return [render(header), `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...rows.map(render)].join(
    "\n",
  );
}

function aimText({ aim }: Line): string {
  if (!aim) return "";
  const bound = aim.atLeast === undefined ? `≤ ${aim.atMost}` : `≥ ${aim.atLeast}`;
  return aim.unit === undefined ? bound : `${bound} ${aim.unit}`;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export const perSecond = (value: number): string => `${Math.round(value).toLocaleString("en")}/s`;
export const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 2 : 1)} ms`;
export const seconds = (valueMs: number): string => `${(valueMs / 1000).toFixed(1)} s`;

/** What the benchmark is about to do, for those who watch it. */
export const say = (text: string): void => console.error(`bench: ${text}`);

export const percentile99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0;
