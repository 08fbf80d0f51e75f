/**
 * The specifier for `new Worker(…)` of an entry `src/**\/<name>-worker.ts`, given from the project's root. build.ts makes
 * every such file an entry of its own. In the executable the entry is under the executable's own root; from source it is where
 * the file is. Neither form depends on the importing module or the working directory.
 */
export function workerEntry(path: `src/${string}-worker.ts`): string {
  return Bun.isStandaloneExecutable ? `./${path}` : new URL(`../../${path}`, import.meta.url).href;
}
