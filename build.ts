/**
 * `bun run build` makes dist/svc: server, CLI, page, docs assets and native libraries in one file.
 * `bun run build --all` makes dist/svc-<target> for every target, each with its own native libraries alone.
 */
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildUi, type UiFile } from "./src/http/page/ui-build.ts";
import { LIMITS } from "./src/protocol/limits.ts";
import { readEngine } from "./src/sandbox/engine-wasm.ts";
import type { BuiltInModel } from "./src/search/model/built-in-model.ts";
import {
  builtInLibraryOf,
  builtInModelOf,
  libraryModule,
  modelModule,
  ortPlugin,
} from "./src/search/model/ort-built-in.ts";
import type { BuiltInFile } from "./src/search/model/ort-library.ts";
import * as emptyDatabases from "./src/store/empty-databases.ts";

export interface Target {
  /** What `bun build --target` and the file name call it. */
  name: "linux-x64" | "linux-arm64" | "darwin-arm64" | "darwin-x64" | "windows-x64";
  /** Path of sqlite-vec's library inside node_modules. */
  sqliteVec: string;
}

export const TARGETS: readonly Target[] = [
  { name: "linux-x64", sqliteVec: "sqlite-vec-linux-x64/vec0.so" },
  { name: "linux-arm64", sqliteVec: "sqlite-vec-linux-arm64/vec0.so" },
  { name: "darwin-arm64", sqliteVec: "sqlite-vec-darwin-arm64/vec0.dylib" },
  { name: "darwin-x64", sqliteVec: "sqlite-vec-darwin-x64/vec0.dylib" },
  { name: "windows-x64", sqliteVec: "sqlite-vec-windows-x64/vec0.dll" },
];

export interface BuildOptions {
  target: Target;
  /** Path of the executable to make; replaced in one step. */
  outfile: string;
  /** The node_modules folder that holds the target's native packages. */
  nativeModules: string;
  /** Build with the running Bun instead of fetching the target's. */
  native: boolean;
  /** A model to build in: a directory `…/<organisation>/<name>`. */
  model?: string | undefined;
  /** Entry module; the command line unless a test says otherwise. */
  entry?: string;
}

const PROJECT = import.meta.dir;
const ENTRY = join(PROJECT, "cli/main.ts");

if (import.meta.main) {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    for (const line of describeFailure(error)) console.error(`build: ${line}`);
    process.exit(1);
  }
}

async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { all: { type: "boolean" }, model: { type: "string" } } });
  const nativeModules = join(PROJECT, "node_modules");
  const model = values.model === undefined ? undefined : resolve(values.model);
  await report({ target: hostTarget(), outfile: join(PROJECT, "dist/svc"), nativeModules, native: true, model });
  if (values.all) await buildEvery(join(PROJECT, "dist"), model);
}

async function buildEvery(outDir: string, model: string | undefined): Promise<void> {
  const staging = await mkdtemp(join(tmpdir(), "svc-native-"));
  try {
    const nativeModules = await installEveryPlatform(staging);
    for (const target of TARGETS) {
      await report({ target, outfile: crossOutfile(outDir, target), nativeModules, native: false, model });
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** `svc-<target>`, with `.exe` where that matters. */
export function crossOutfile(outDir: string, { name }: Target): string {
  return join(outDir, `svc-${name}${name.startsWith("windows") ? ".exe" : ""}`);
}

async function report(options: BuildOptions): Promise<void> {
  const startedAt = performance.now();
  await buildExecutable(options);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const megabytes = ((await stat(options.outfile)).size / 1e6).toFixed(0);
  console.log(`${options.outfile}  ${options.target.name}  ${megabytes} MB  ${seconds} s`);
}

/** Builds one executable. Throws, and leaves an existing `outfile` alone, if anything that is to be built in is missing. */
export async function buildExecutable(options: BuildOptions): Promise<void> {
  const { outfile, target, native, entry = ENTRY } = options;
  const outDir = dirname(outfile);
  await mkdir(outDir, { recursive: true });
  const staging = await mkdtemp(join(outDir, ".build-"));
  try {
    const assets = await collectAssets(options, staging);
    const staged = join(staging, target.name.startsWith("windows") ? "svc.exe" : "svc");
    await Bun.build({
      entrypoints: [entry, ...(await workerEntries())],
      root: PROJECT,
      target: "bun",
      format: "esm",
      minify: true,
      bytecode: true,
      // A command loads the chunks it imports and no others: `svc version` starts a third faster.
      splitting: true,
      sourcemap: "linked",
      compile: {
        outfile: staged,
        autoloadDotenv: false,
        autoloadBunfig: false,
        // The runtime's own bound, beyond which it answers without us, is 16 KiB: a long query string passes it (API-14).
        execArgv: [`--max-http-header-size=${LIMITS.requestHeadBytes}`],
        ...(native ? {} : { target: `bun-${target.name}` }),
      },
      plugins: [builtInPlugin(assets), ortPlugin],
    });
    await chmod(staged, 0o755);
    await rename(staged, outfile);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Every `src/**\/*-worker.ts` is the entry of a Worker and has to be named to the bundler. */
async function workerEntries(): Promise<string[]> {
  const files = await Array.fromAsync(new Bun.Glob("src/**/*-worker.ts").scan({ cwd: PROJECT, absolute: true }));
  return files.sort();
}

interface BuiltInAssets {
  /** Absolute path of the native library. */
  sqliteVec: string;
  page: UiFile[];
  /** Absolute path of the interpreter of programs, with its fuel put in. */
  programEngine: string;
  /** Empty databases: the names of the functions that give them, and their absolute paths. */
  databases: readonly { readonly name: string; readonly path: string }[];
  /** What runs models. */
  ort: readonly BuiltInFile[];
  model: BuiltInModel | undefined;
}

/** Everything is made before the bundler starts: a build started inside one of its plugins never ends. */
async function collectAssets(options: BuildOptions, staging: string): Promise<BuiltInAssets> {
  const { nativeModules, target } = options;
  const sqliteVec = join(nativeModules, target.sqliteVec);
  if (!existsSync(sqliteVec)) throw new Error(`${sqliteVec} is missing; run bun install`);
  const programEngine = join(staging, "program-engine.wasm");
  await Bun.write(programEngine, await readEngine());
  const databases = Object.entries(emptyDatabases).map(([name, bytes]) => ({ name, path: join(staging, name), bytes }));
  for (const { path, bytes } of databases) await Bun.write(path, bytes());
  return {
    sqliteVec,
    programEngine,
    databases,
    page: await buildUi(join(PROJECT, "ui")),
    ort: await builtInLibraryOf(nativeModules, target.name, staging),
    model: options.model === undefined ? undefined : builtInModelOf(options.model),
  };
}

/** Replaces the modules that look for files in the source tree by ones that hold the built-in files. */
function builtInPlugin({ sqliteVec, programEngine, databases, page, ort, model }: BuiltInAssets): Bun.BunPlugin {
  const contentsByModule: Readonly<Record<string, string>> = {
    "src/store/database/sqlite-vec-library.ts": `import file from ${JSON.stringify(sqliteVec)} with { type: "file" };\nexport const sqliteVecLibrary = file;`,
    "src/store/empty-databases.ts": ['import { readFileSync } from "node:fs";', ...databases.map(bytesGiver)].join(
      "\n",
    ),
    "src/sandbox/engine-wasm.ts": `import file from ${JSON.stringify(programEngine)} with { type: "file" };\nexport const readEngine = () => Bun.file(file).bytes();`,
    "src/search/model/ort-library.ts": libraryModule(ort),
    "src/search/model/built-in-model.ts": modelModule(model),
    "src/http/page/ui-files.ts": `const files = ${JSON.stringify(page)};\nexport const readUiFiles = async () => files;`,
  };
  return {
    name: "svc-built-in",
    setup(build) {
      for (const [module, contents] of Object.entries(contentsByModule)) {
        // One that was moved would be built in as it is, and look for the source tree.
        if (!existsSync(join(PROJECT, module))) throw new Error(`${module} is not there to be replaced`);
        const filter = new RegExp(`[\\\\/]${module.replaceAll(".", "\\.").replaceAll("/", "[\\\\/]")}$`);
        build.onLoad({ filter }, () => ({ contents, loader: "ts" }));
      }
    },
  };
}

function bytesGiver({ name, path }: BuiltInAssets["databases"][number]): string {
  return `import ${name}File from ${JSON.stringify(path)} with { type: "file" };\nexport const ${name} = () => readFileSync(${name}File);`;
}

/** Installs the locked native packages of every platform below `dir` (which it may fill) and returns its node_modules. */
export async function installEveryPlatform(dir: string): Promise<string> {
  for (const name of ["package.json", "bun.lock"]) await copyFile(join(PROJECT, name), join(dir, name));
  const install = Bun.spawn(
    [process.execPath, "install", "--frozen-lockfile", "--production", "--ignore-scripts", "--os=*", "--cpu=*"],
    { cwd: dir, stdout: "ignore", stderr: "pipe" },
  );
  const [stderr, exitCode] = await Promise.all([new Response(install.stderr).text(), install.exited]);
  if (exitCode !== 0) throw new Error(`fetching the native packages of every platform failed:\n${stderr}`);
  return join(dir, "node_modules");
}

/** The target this machine is. */
export function hostTarget(): Target {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const target = TARGETS.find(({ name }) => name === `${os}-${process.arch}`);
  if (!target)
    throw new Error(
      `there is no build for ${os}-${process.arch}; there is one for ${TARGETS.map((t) => t.name).join(", ")}`,
    );
  return target;
}

function describeFailure(error: unknown): string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(describeFailure);
  if (!(error instanceof Error)) return [String(error)];
  const position = (error as Partial<BuildMessage>).position;
  return [position ? `${position.file}:${position.line}: ${error.message}` : error.message];
}
