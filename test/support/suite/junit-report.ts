/** Reads the JUnit file that `bun test` writes. */

interface JunitCase {
  file: string;
  title: string;
  outcome: "passed" | "failed" | "skipped";
  seconds: number;
}

export interface JunitReport {
  /** The totals the document states about itself. */
  tests: number;
  failures: number;
  skipped: number;
  cases: JunitCase[];
}

/** Returns undefined if `xml` is no such report or its totals are not those of its cases. */
export function parseJunit(xml: string): JunitReport | undefined {
  const head = /<testsuites ([^>]*)>/.exec(xml)?.[1];
  if (head === undefined || !xml.trimEnd().endsWith("</testsuites>")) return undefined;
  const total = (name: string) => Number(attribute(head, name) ?? Number.NaN);
  const report = {
    tests: total("tests"),
    failures: total("failures"),
    skipped: total("skipped"),
    cases: parseCases(xml),
  };
  const count = (outcome: JunitCase["outcome"]) => report.cases.filter((each) => each.outcome === outcome).length;
  const agrees =
    report.tests === report.cases.length && report.failures === count("failed") && report.skipped === count("skipped");
  return agrees ? report : undefined;
}

function parseCases(xml: string): JunitCase[] {
  const cases = xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g);
  return Array.from(cases, ([, attributes = "", content = ""]) => ({
    file: attribute(attributes, "file") ?? "",
    title: [attribute(attributes, "classname"), attribute(attributes, "name")].filter(Boolean).join(" > "),
    outcome: /<(failure|error)\b/.test(content) ? "failed" : /<skipped\b/.test(content) ? "skipped" : "passed",
    seconds: Number(attribute(attributes, "time") ?? 0),
  }));
}

function attribute(attributes: string, name: string): string | undefined {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1];
  return value?.replace(/&(lt|gt|quot|apos|amp|#(\d+));/g, (_, entity: string, code?: string) =>
    code === undefined ? (ENTITIES[entity] ?? "") : String.fromCodePoint(Number(code)),
  );
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
