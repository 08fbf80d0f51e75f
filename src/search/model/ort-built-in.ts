/** Puts the native library that runs models, and a model, into the executable; build.ts uses it. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BunPlugin } from "bun";
import type { BuiltInModel } from "./built-in-model.ts";
import { MODEL_FILES, WEIGHTS } from "./model-files.ts";
import type { BuiltInFile } from "./ort-library.ts";

/** Half as small as this takes forty times as long. */
const ZSTD_LEVEL = 6;
/** Copies of another file, and files that only devices other than the processor need. */
const LEFT_OUT = /^libonnxruntime\.so\.\d+\.|providers_shared/;

/** Compresses the library of one target into `staging`. Throws when the package holds none. */
export async function builtInLibraryOf(nativeModules: string, target: string, staging: string): Promise<BuiltInFile[]> {
  const [os = "", arch = ""] = target.split("-");
  const directory = join(nativeModules, "onnxruntime-node/bin/napi-v3", os === "windows" ? "win32" : os, arch);
  if (!existsSync(directory)) throw new Error(`${directory} is missing; run bun install`);
  const names = readdirSync(directory).filter((name) => !LEFT_OUT.test(name));
  return Promise.all(
    names.map(async (name) => {
      const bytes = readFileSync(join(directory, name));
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      // Compressing takes longer than the rest of a build, and the library is the same each time, so the result is kept.
      const kept = join(nativeModules, ".cache/svc", `${sha256}-${ZSTD_LEVEL}.zst`);
      if (!existsSync(kept)) {
        mkdirSync(dirname(kept), { recursive: true });
        const temporary = join(staging, `${name}.zst`);
        await Bun.write(temporary, await Bun.zstdCompress(bytes, { level: ZSTD_LEVEL }));
        await Bun.write(`${kept}.${process.pid}.tmp`, Bun.file(temporary));
        renameSync(`${kept}.${process.pid}.tmp`, kept);
      }
      const path = join(staging, `${name}.zst`);
      await Bun.write(path, Bun.file(kept));
      return { name, path, sha256 };
    }),
  );
}

/** Returns the files of a model, a directory `…/<organisation>/<name>`, to be built in unchanged. */
export function builtInModelOf(directory: string): BuiltInModel {
  const id = directory.replace(/\/+$/, "").split("/").slice(-2).join("/");
  const weights = WEIGHTS.find((name) => existsSync(join(directory, name)));
  const missing = weights ? MODEL_FILES.find((name) => !existsSync(join(directory, name))) : WEIGHTS[0];
  if (!weights || missing !== undefined) throw new Error(`${directory} is no model: ${missing} is missing`);
  const files = [...MODEL_FILES, weights].map((name) => {
    const path = join(directory, name);
    const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
    return { name, path, size: statSync(path).size, sha256 };
  });
  return { id, files };
}

/** Returns the source of a module that exports built-in files. */
export function libraryModule(files: readonly BuiltInFile[]): string {
  const imports = files.map(
    ({ path }, index) => `import f${index} from ${JSON.stringify(path)} with { type: "file" };`,
  );
  const list = files.map(
    ({ name, sha256 }, index) => `{name:${JSON.stringify(name)},path:f${index},sha256:"${sha256}"}`,
  );
  return `${imports.join("\n")}\nexport const ortLibrary = [${list.join(",")}];`;
}

export function modelModule(model: BuiltInModel | undefined): string {
  if (!model) return "export const builtInModel = undefined;";
  const imports = model.files.map(({ path }, i) => `import f${i} from ${JSON.stringify(path)} with { type: "file" };`);
  const list = model.files.map(
    ({ name, size, sha256 }, i) => `{name:${JSON.stringify(name)},path:f${i},size:${size},sha256:"${sha256}"}`,
  );
  return `${imports.join("\n")}\nexport const builtInModel = {id:${JSON.stringify(model.id)},files:[${list.join(",")}]};`;
}

/** Text in third-party packages and its replacement; each must occur exactly once. */
const PATCHES: readonly { readonly file: RegExp; readonly from: RegExp; readonly to: string }[] = [
  {
    // The path of the binding is computed, which no bundler can follow, so prepareOrtBinding supplies it.
    file: /[\\/]onnxruntime-node[\\/]dist[\\/]binding\.js$/,
    from: /require\(`\.\.\/bin\/napi-v3\/[^`]+`\)/g,
    to: '(() => { const m = { exports: {} }; process.dlopen(m, globalThis[Symbol.for("svc.ort-binding")]); return m.exports; })()',
  },
];

/** Makes transformers.js and onnxruntime fit into one file. Fails the build where a package does not have the expected text. */
export const ortPlugin: BunPlugin = {
  name: "svc-ort",
  setup(build) {
    // Search does not handle pictures; the package only needs some function in place of sharp.
    build.onResolve({ filter: /^sharp$/ }, () => ({ path: "sharp", namespace: "svc-stub" }));
    build.onLoad({ filter: /^sharp$/, namespace: "svc-stub" }, () => ({
      loader: "js",
      contents: 'export default function sharp() { throw new Error("pictures are not part of this build"); }',
    }));
    for (const { file, from, to } of PATCHES) {
      build.onLoad({ filter: file }, async ({ path }) => {
        const source = await Bun.file(path).text();
        if ([...source.matchAll(from)].length !== 1)
          throw new Error(`${path} is not as it was: ${from} is not there once`);
        return { loader: "js", contents: source.replace(from, () => to) };
      });
    }
  },
};
