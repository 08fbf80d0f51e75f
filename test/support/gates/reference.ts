/** The rules of docs/reference and where they are cited. `bun run check` holds one against the other. */
import { join } from "node:path";

const RULE = /^- \*\*([A-Z]+-\d+)\*\* /gm;
/** Documents that are not in the repository: nobody who reads a citation of them could look it up. */
const FOREIGN =
  /\b(?:spec|gaps|design|recipes)(?:\.md)? ?§{0,2} ?\d+|§\d+|\b[Pp]rocess rules? \d+|\bof the specification \(/g;

/** The labels with which a title begins: the first text of a call, or what a scenario gives as its title. */
const LABELS = /(?:\(|\btitle:)\s*["'`]((?:\[[^\]\n]{2,}\] )+)/g;
const ID = /^[A-Z]+-\d+$/;

export interface ReferenceFaults {
  /** `path: id` of citations without a rule. */
  unknown: string[];
  /** Rules that no test cites. */
  unproved: string[];
  /** `path: text` of citations of documents that are not here. */
  foreign: string[];
  /** `path: [label]` of test titles that begin with a label which is no rule's id. */
  labels: string[];
}

/** Sources and rule texts by path from the project's root. */
export function checkReference(
  sourcesByPath: ReadonlyMap<string, string>,
  rulesByPath: ReadonlyMap<string, string>,
): ReferenceFaults {
  const rules = new Set(
    [...rulesByPath.values()].flatMap((text) => [...text.matchAll(RULE)].map((match) => match[1]!)),
  );
  const prefixes = [...new Set([...rules].map((id) => id.split("-")[0]!))];
  const citation = new RegExp(`\\b(?:${prefixes.join("|")})-\\d+\\b`, "g");
  const faults: ReferenceFaults = { unknown: [], unproved: [], foreign: [], labels: [] };
  const proved = new Set<string>();
  for (const [path, source] of sourcesByPath) {
    for (const [id] of source.matchAll(citation)) {
      if (!rules.has(id)) faults.unknown.push(`${path}: ${id}`);
      else if (isTest(path)) proved.add(id);
    }
    for (const [text] of source.matchAll(FOREIGN)) faults.foreign.push(`${path}: ${text}`);
    if (isTest(path) || path.startsWith("test/"))
      faults.labels.push(...freeLabels(source).map((label) => `${path}: [${label}]`));
  }
  faults.unproved = [...rules].filter((id) => !proved.has(id));
  return faults;
}

/** A rule that there is not is found as a citation: here it is enough that a label has the form of an id. */
function freeLabels(source: string): string[] {
  return [...source.matchAll(LABELS)]
    .flatMap(([, labels]) => [...labels!.matchAll(/\[([^\]]*)\]/g)].map(([, label]) => label!))
    .filter((label) => !ID.test(label));
}

/**
 * What is wrong with the list of the files of rules: `file: FIRST to LAST` that the list should say and does not. Last is the
 * highest number of the last kind of rule in a file.
 */
export function checkList(list: string, rulesByPath: ReadonlyMap<string, string>): string[] {
  return [...rulesByPath].flatMap(([path, text]) => {
    const ids = [...text.matchAll(RULE)].map((match) => match[1]!);
    const [first, last] = [ids[0], ids.at(-1)];
    if (!first || !last) return [];
    const kind = last.split("-")[0]!;
    const numbers = ids.filter((id) => id.startsWith(`${kind}-`)).map((id) => Number(id.split("-")[1]));
    const file = path.split("/").at(-1)!;
    const range = `${first} to ${kind}-${Math.max(...numbers)}`;
    return list.includes(`](${file}): ${range}\n`) ? [] : [`${file}: ${range}`];
  });
}

function isTest(path: string): boolean {
  return /\.test\.tsx?$/.test(path);
}

/** Everything that may cite rules. */
export async function readCiting(root: string): Promise<Map<string, string>> {
  return readAll(root, "{src,cli,ui,test}/**/*.{ts,tsx}", (path) => !path.startsWith("test/support/gates/reference"));
}

export async function readRules(root: string): Promise<Map<string, string>> {
  return readAll(root, "docs/reference/*.md", () => true);
}

async function readAll(root: string, pattern: string, wanted: (path: string) => boolean): Promise<Map<string, string>> {
  const paths = (await Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: root }))).filter(wanted).sort();
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
  );
}
