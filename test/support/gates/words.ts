/**
 * Names that were given up for the field's own word (docs/glossary.md). A name is looked at by its parts (`toldBefore` is `told`
 * and `before`); in comments and texts these are plain English, and may stand.
 */
import { join } from "node:path";

/** What is said instead, by the word that was given up. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ["carrier", "transport"],
  ["coll", "collection"],
  ["ds", "dataset"],
  ["overruled", "superseded"],
  ["planted", "genesis"],
  ["planting", "genesis"],
  ["seldom", "rate-limited"],
  ["tell", "notify"],
  ["telling", "notify"],
  ["tells", "notify"],
  ["told", "notified"],
  ["unopened", "pending body"],
]);
/** Comments and texts, which are passed over, or a name. */
const TOKEN =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|([A-Za-z_$][\w$]*)/g;
const PART = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;
/** Here a fault is planted, to prove that a gate finds it. */
const PLANTS_FAULTS = /^test\/support\//;
const PLANT = /^plant/;

/** `path:line name: say …` of each name with a word that was given up, by path. */
export function findGivenUpWords(sourcesByPath: ReadonlyMap<string, string>): string[] {
  return [...sourcesByPath].flatMap(([path, source]) =>
    [...source.matchAll(TOKEN)].flatMap(({ 1: name, index }) => {
      if (name === undefined) return [];
      const word = (name.match(PART) ?? []).map((part) => part.toLowerCase()).find((part) => INSTEAD.has(part));
      if (word === undefined || (PLANT.test(word) && PLANTS_FAULTS.test(path))) return [];
      return [`${path}:${source.slice(0, index).split("\n").length} ${name}: say ${INSTEAD.get(word)}`];
    }),
  );
}

export async function readSources(root: string): Promise<Map<string, string>> {
  const paths = await Array.fromAsync(new Bun.Glob("{src,cli,ui,test,docs}/**/*.{ts,tsx}").scan({ cwd: root }));
  return new Map(
    await Promise.all(paths.sort().map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
  );
}
