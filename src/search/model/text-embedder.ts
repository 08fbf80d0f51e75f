/** Turns texts into vectors with a model on the disk. It runs in a process of its own: see embed-child.ts. */
import { existsSync } from "node:fs";
import { join } from "node:path";

/**
 * How many tokens a vector represents at most: both models that were measured are trained, or good, up to this length, and the
 * work grows with its square. A longer text gets several vectors, so that nothing of it is left out.
 */
const MAX_TOKENS = 256;
const MAX_BATCH = 8;
/** Tokens of a batch, padding included. */
const MAX_BATCH_TOKENS = 1_536;
/** How many vectors a text has at most; the index has only so many bits for their numbers. */
const MAX_PARTS = 32;

export interface TextEmbedderOptions {
  /** Holds `<organisation>/<name>/`. */
  readonly modelsDir: string;
  readonly model: string;
  readonly threads: number;
}

export interface TextEmbedder {
  readonly dimension: number;
  /** The mean of the vectors of texts that have no subject in common. */
  readonly center: Float32Array;
  /** Returns for each text the vectors of its parts, of length one. It awaits `between` between batches. */
  embed(texts: readonly string[], kind: "query" | "passage", between?: () => Promise<void>): Promise<Float32Array[][]>;
}

interface Part {
  readonly text: number;
  readonly ids: readonly number[];
}

export async function loadTextEmbedder({ modelsDir, model, threads }: TextEmbedderOptions): Promise<TextEmbedder> {
  const { AutoTokenizer, env } = await import("@huggingface/transformers");
  const { InferenceSession, Tensor } = await import("onnxruntime-node");
  // All files are on the disk: nothing here uses the network.
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = `${modelsDir}/`;
  const tokenizer = await AutoTokenizer.from_pretrained(model);
  const session = await InferenceSession.create(modelFile(join(modelsDir, model)), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
  });
  const prefixes = prefixesOf(model);
  const idsOf = (text: string): number[] => tokenizer.encode(text);
  const padding = tokenizer.pad_token_id ?? 0;

  const run = async (batch: readonly Part[]): Promise<Float32Array[]> => {
    const width = Math.max(...batch.map(({ ids }) => ids.length));
    const ids = new BigInt64Array(batch.length * width).fill(BigInt(padding));
    const mask = new BigInt64Array(batch.length * width);
    batch.forEach((part, row) => {
      part.ids.forEach((id, column) => {
        ids[row * width + column] = BigInt(id);
        mask[row * width + column] = 1n;
      });
    });
    const shape = [batch.length, width];
    const feeds: Record<string, InstanceType<typeof Tensor>> = {
      input_ids: new Tensor("int64", ids, shape),
      attention_mask: new Tensor("int64", mask, shape),
      ...(session.inputNames.includes("token_type_ids")
        ? { token_type_ids: new Tensor("int64", new BigInt64Array(batch.length * width), shape) }
        : {}),
    };
    const output = (await session.run(feeds))[session.outputNames[0]!]!;
    const states = output.data as Float32Array;
    const dimension = output.dims[2]!;
    return batch.map((part, row) => meanOf(states, row * width * dimension, part.ids.length, dimension));
  };

  const embed: TextEmbedder["embed"] = async (texts, kind, between) => {
    const parts = texts.flatMap((text, index) =>
      windowsOf(prefixes[kind], text, idsOf).map((ids): Part => ({ text: index, ids })),
    );
    const vectors = new Map<Part, Float32Array>();
    for (const batch of batchesOf(parts)) {
      await between?.();
      const made = await run(batch);
      batch.forEach((part, index) => void vectors.set(part, made[index]!));
    }
    const byText: Float32Array[][] = texts.map(() => []);
    for (const part of parts) byText[part.text]!.push(vectors.get(part)!);
    return byText;
  };

  const center = centerOf((await embed(SAMPLES, "passage")).flat());
  return { dimension: center.length, center, embed };
}

/** Texts that have no subject in common, in several languages. */
const SAMPLES = [
  "The harbour was closed because of the storm.",
  "npm install --save-dev typescript",
  "Die Rechnung wurde gestern bezahlt.",
  "今天的天气非常炎热。",
  "She plays the cello in a small orchestra.",
  "会議は来週の火曜日に延期されました。",
  "La reunión empieza a las nueve.",
  "The derivative of a constant is zero.",
  "قرأت الكتاب أمس",
  "Add two eggs and stir until smooth.",
  "Error: connection refused by the server",
  "Les élections auront lieu en mai.",
];

function centerOf(vectors: readonly Float32Array[]): Float32Array {
  const center = new Float32Array(vectors[0]?.length ?? 0);
  for (const vector of vectors) for (const [i, value] of vector.entries()) center[i]! += value / vectors.length;
  return center;
}

function modelFile(directory: string): string {
  const quantised = join(directory, "onnx/model_quantized.onnx");
  return existsSync(quantised) ? quantised : join(directory, "onnx/model.onnx");
}

/** E5 models were trained with one word before a query and another before a passage. */
function prefixesOf(model: string): Readonly<Record<"query" | "passage", string>> {
  return /(^|[-/])e5-/i.test(model) ? { query: "query: ", passage: "passage: " } : { query: "", passage: "" };
}

/** Splits a text into as many windows of tokens as it needs; it cuts between words where there are any. */
function windowsOf(prefix: string, text: string, idsOf: (text: string) => number[]): number[][] {
  const windows: number[][] = [];
  const pending = [text];
  for (let next = pending.pop(); next !== undefined && windows.length < MAX_PARTS; next = pending.pop()) {
    const ids = idsOf(prefix + next);
    if (ids.length <= MAX_TOKENS || next.length < 2) windows.push(ids.slice(0, MAX_TOKENS));
    else {
      const cut = middleOf(next, Math.ceil(ids.length / MAX_TOKENS));
      pending.push(next.slice(cut), next.slice(0, cut));
    }
  }
  return windows;
}

/** Returns where the first of `pieces` pieces of a text ends: at a space near by, else anywhere except within a character. */
function middleOf(text: string, pieces: number): number {
  const wanted = Math.max(1, Math.floor(text.length / pieces));
  const near = Math.floor(wanted * 0.8);
  const spaces = [...text.slice(near, wanted).matchAll(/[\s。，、！？]/g)];
  const space = spaces.at(-1);
  if (space) return near + space.index + 1;
  const code = text.charCodeAt(wanted - 1);
  return code >= 0xd800 && code <= 0xdbff && wanted < text.length ? wanted + 1 : wanted;
}

/** Puts parts of similar length together, so that little is padded. */
function batchesOf(parts: readonly Part[]): Part[][] {
  const batches: Part[][] = [];
  let batch: Part[] = [];
  for (const part of [...parts].sort((a, b) => a.ids.length - b.ids.length)) {
    if (batch.length === MAX_BATCH || (batch.length > 0 && (batch.length + 1) * part.ids.length > MAX_BATCH_TOKENS)) {
      batches.push(batch);
      batch = [];
    }
    batch.push(part);
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}

function meanOf(states: Float32Array, at: number, tokens: number, dimension: number): Float32Array {
  const mean = new Float32Array(dimension);
  for (let token = 0; token < tokens; token++)
    for (let i = 0; i < dimension; i++) mean[i]! += states[at + token * dimension + i]!;
  let square = 0;
  for (const value of mean) square += value * value;
  const length = Math.sqrt(square) || 1;
  return mean.map((value) => value / length);
}
