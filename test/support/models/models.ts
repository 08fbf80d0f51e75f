/** Real models for tests that need one: named by SVC_TEST_MODELS, else beside the project. */
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export const ENGLISH_MODEL = "sentence-transformers/all-MiniLM-L6-v2";
export const MULTILINGUAL_MODEL = "intfloat/multilingual-e5-small";

const MODELS = process.env["SVC_TEST_MODELS"] ?? resolve(import.meta.dir, "../../../../shared/models");

export const hasModels = [ENGLISH_MODEL, MULTILINGUAL_MODEL].every((model) => existsSync(join(MODELS, model, "onnx")));
export const NO_MODELS = "no models; SVC_TEST_MODELS names a directory with them";

export const modelDirectory = (model: string): string => join(MODELS, model);

/** Puts a model in its place in the one account of a data root, as a person would. */
export function placeModel(dataDir: string, model: string): void {
  const account = readdirSync(dataDir).find((name) => /^A[1-9A-HJ-NP-Za-km-z]{20,}$/.test(name));
  const place = join(dataDir, account ?? ".", "models", model);
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(modelDirectory(model), place);
}
