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
/**
 * A place is where an epoch of a space is kept on the network, and in the program nothing else is; what knows of it may name it.
 * (In JSX a text of people's reads like a name.)
 */
const PLACE = /^(?:(places?)|(?:dis|mis|un)?placed?)$/;
const PROGRAM = /^(?:src|cli|ui)\/.*\.ts$/;
const KNOWS_PLACES =
  /^src\/(?:account|engine|space|sync)\/|^src\/store\/(?:tables\/place-table|space-schema|space-store)\.ts$/;
/** Comments and texts, which are passed over, or a name. */
const TOKEN =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|([A-Za-z_$][\w$]*)/g;
const PART = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;
/** Here a fault is planted, to prove that a gate finds it. */
const PLANTS_FAULTS = /^test\/support\//;
const PLANT = /^plant/;

/** What is said instead of a part of a name in a file; undefined where it may stand. */
function insteadOf(part: string, path: string): string | undefined {
  const place = PROGRAM.test(path) ? PLACE.exec(part) : null;
  if (place && !(place[1] && KNOWS_PLACES.test(path))) return "position, or what it is";
  return INSTEAD.get(part);
}

/** `path:line name: say …` of each name with a word that was given up, by path. */
export function findGivenUpWords(sourcesByPath: ReadonlyMap<string, string>): string[] {
  return [...sourcesByPath].flatMap(([path, source]) =>
    [...source.matchAll(TOKEN)].flatMap(({ 1: name, index }) => {
      if (name === undefined) return [];
      const word = (name.match(PART) ?? []).map((part) => part.toLowerCase()).find((part) => insteadOf(part, path));
      if (word === undefined || (PLANT.test(word) && PLANTS_FAULTS.test(path))) return [];
      return [`${path}:${source.slice(0, index).split("\n").length} ${name}: say ${insteadOf(word, path)}`];
    }),
  );
}

export async function readSources(root: string): Promise<Map<string, string>> {
  const paths = await Array.fromAsync(new Bun.Glob("{src,cli,ui,test,docs}/**/*.{ts,tsx}").scan({ cwd: root }));
  return new Map(
    await Promise.all(paths.sort().map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
  );
}
