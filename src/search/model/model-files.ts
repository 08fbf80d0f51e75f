/** Models on the disk: `<models>/<organisation>/<name>/`, in the layout of a model hub. */
import { createHash } from "node:crypto";
import {
  chmodSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { builtInModel } from "./built-in-model.ts";

/** The files that a model needs besides its weights. */
export const MODEL_FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"] as const;
/** The files of weights; the first one that exists is used. */
export const WEIGHTS = ["onnx/model_quantized.onnx", "onnx/model.onnx"] as const;
/** Finds text in about a hundred languages from a query in another language; see docs/search.md for figures. */
export const DEFAULT_MODEL = "intfloat/multilingual-e5-small";
/** A file beside a downloaded model: it lists what the model's files were when they were complete. */
const LOCK = "files.lock.json";

export interface LockedFile {
  readonly size: number;
  /** The digest of the content, or of a git blob of it, whichever the hub stated. */
  readonly digest: string;
}
export type ModelLock = Readonly<Record<string, LockedFile>>;

/** Whether all files of a model are there. */
function isModelThere(modelsDir: string, model: string): boolean {
  const directory = join(modelsDir, model);
  return (
    MODEL_FILES.every((name) => existsSync(join(directory, name))) &&
    WEIGHTS.some((name) => existsSync(join(directory, name)))
  );
}

/** Chooses a model among those on the disk: the one asked for, else the default one, else the first. */
export function findModel(modelsDir: string, wanted: string | undefined): string | undefined {
  if (wanted !== undefined) return isModelThere(modelsDir, wanted) ? wanted : undefined;
  const there = listModels(modelsDir);
  return there.includes(DEFAULT_MODEL) ? DEFAULT_MODEL : there[0];
}

function listModels(modelsDir: string): string[] {
  if (!existsSync(modelsDir)) return [];
  const folders = (path: string): string[] =>
    readdirSync(path, { withFileTypes: true })
      .filter((entry) => statSync(join(path, entry.name)).isDirectory())
      .map(({ name }) => name)
      .sort();
  return folders(modelsDir)
    .flatMap((organisation) => folders(join(modelsDir, organisation)).map((name) => `${organisation}/${name}`))
    .filter((model) => isModelThere(modelsDir, model));
}

/**
 * Returns the first file that differs from what was downloaded. Returns undefined when none does, or when a person put the model
 * there, so that nothing says what the files should be.
 */
export async function findSpoiltFile(modelsDir: string, model: string): Promise<string | undefined> {
  const lock = readLock(join(modelsDir, model));
  for (const [name, file] of Object.entries(lock ?? {})) {
    const path = join(modelsDir, model, name);
    if (!existsSync(path) || statSync(path).size !== file.size) return name;
    if ((await digestOf(path, file)) !== file.digest) return name;
  }
  return undefined;
}

/**
 * Identifies the bytes of a model's weights, because vectors of different weights cannot be compared. `spoilt` names a file that
 * changed.
 */
export async function modelFingerprint(modelsDir: string, model: string): Promise<{ id: string; spoilt?: string }> {
  const spoilt = await findSpoiltFile(modelsDir, model);
  const weights = WEIGHTS.map((name) => join(modelsDir, model, name)).find((path) => existsSync(path));
  if (weights === undefined) return { id: "", spoilt: WEIGHTS[0] };
  const id = (await digestOf(weights, { size: statSync(weights).size, digest: "" })).slice(0, 16);
  return { id, ...(spoilt === undefined ? {} : { spoilt }) };
}

function readLock(directory: string): ModelLock | undefined {
  try {
    return JSON.parse(readFileSync(join(directory, LOCK), "utf8")) as ModelLock;
  } catch {
    return undefined; // there is no readable lock, so there is nothing to check the files against
  }
}

export function writeLock(modelsDir: string, model: string, lock: ModelLock): void {
  const target = join(modelsDir, model, LOCK);
  writeFileSync(`${target}.tmp`, JSON.stringify(lock, undefined, 1));
  renameSync(`${target}.tmp`, target);
}

/** Returns the SHA-256 of a file's content, or the SHA-1 of a git blob of it where the stated digest is one. */
export async function digestOf(path: string, { size, digest }: LockedFile): Promise<string> {
  const isBlob = digest.length === 40;
  const hash = createHash(isBlob ? "sha1" : "sha256");
  if (isBlob) hash.update(`blob ${size}\0`);
  for await (const part of createReadStream(path)) hash.update(part as Uint8Array);
  return hash.digest("hex");
}

/**
 * Writes the built-in model into the directory of models, unless it is there. Returns its name; undefined where none is built in.
 */
export async function unpackBuiltInModel(modelsDir: string): Promise<string | undefined> {
  if (!builtInModel) return undefined;
  const { id, files } = builtInModel;
  if (isModelThere(modelsDir, id) && (await findSpoiltFile(modelsDir, id)) === undefined) return id;
  for (const { name, path } of files) {
    const target = join(modelsDir, id, name);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    await Bun.write(`${target}.tmp`, Bun.file(path));
    chmodSync(`${target}.tmp`, 0o600);
    renameSync(`${target}.tmp`, target);
  }
  writeLock(modelsDir, id, Object.fromEntries(files.map(({ name, size, sha256 }) => [name, { size, digest: sha256 }])));
  return id;
}
