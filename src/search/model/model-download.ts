/**
 * Fetches a model from a hub: `<host>/<model>/resolve/main/<file>`. A file gets its name only when it is complete: it grows as
 * `.part`, continues where an earlier attempt stopped, and must have the size and digest that the hub states.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { digestOf, type LockedFile, MODEL_FILES, type ModelLock, WEIGHTS, writeLock } from "./model-files.ts";

export const DEFAULT_HOST = "https://huggingface.co";
const MAX_REDIRECTS = 5;
/** Larger files are no model that this program should load. */
const MAX_FILE_BYTES = 2 * 1024 ** 3;
/** The download gives up for now on a hub that sends nothing for this long. */
const STALL_MS = 30_000;

export interface ModelDownload {
  readonly host: string;
  readonly modelsDir: string;
  readonly model: string;
  readonly signal: AbortSignal;
  onBytes(file: string, done: number, total: number): void;
}

/** The hub has no such file. */
class MissingFile extends Error {}

/** Downloads a model. Rejects with the reason; what has come so far stays for the next attempt. */
export async function downloadModel(download: ModelDownload): Promise<void> {
  const { modelsDir, model } = download;
  const lock: Record<string, LockedFile> = {};
  for (const name of MODEL_FILES) lock[name] = await fetchFile(download, name);
  Object.assign(lock, await fetchWeights(download));
  writeLock(modelsDir, model, lock);
}

async function fetchWeights(download: ModelDownload): Promise<ModelLock> {
  for (const name of WEIGHTS) {
    try {
      return { [name]: await fetchFile(download, name) };
    } catch (error) {
      if (!(error instanceof MissingFile) || name === WEIGHTS.at(-1)) throw error;
    }
  }
  return {};
}

async function fetchFile(download: ModelDownload, name: string): Promise<LockedFile> {
  const target = join(download.modelsDir, download.model, name);
  const part = `${target}.part`;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const have = existsSync(part) ? statSync(part).size : 0;
  const stall = new AbortController();
  const signal = AbortSignal.any([download.signal, stall.signal]);
  let timer = setTimeout(() => stall.abort(), STALL_MS);
  try {
    const { response, stated } = await open(download, name, have, signal);
    const expected = statedFile(name, response, stated, have);
    if (existsSync(target) && (await isFile(target, expected))) {
      await response.body?.cancel();
      return expected;
    }
    if (expected.size > MAX_FILE_BYTES) throw new Error(`${name} has ${expected.size} bytes, which is too many`);
    await write(part, response, expected.size, (done) => {
      clearTimeout(timer);
      timer = setTimeout(() => stall.abort(), STALL_MS);
      download.onBytes(name, done, expected.size);
    });
    const found = statSync(part).size;
    if (found !== expected.size) throw new Error(`${name}: ${found} of ${expected.size} bytes came`);
    const locked = await checked(part, name, expected);
    renameSync(part, target);
    return locked;
  } catch (error) {
    if (stall.signal.aborted) throw new Error(`${name}: the hub sent nothing for ${STALL_MS / 1000} s`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

interface Opened {
  readonly response: Response;
  /** The headers of every answer on the way: the hub states a file's size and digest before it redirects elsewhere. */
  readonly stated: Headers;
}

async function open({ host, model }: ModelDownload, name: string, have: number, signal: AbortSignal): Promise<Opened> {
  let url = new URL(`${host.replace(/\/+$/, "")}/${model}/resolve/main/${name}`);
  const stated = new Headers();
  for (let redirects = 0; ; redirects++) {
    const response = await fetch(url, {
      redirect: "manual",
      signal,
      headers: { "accept-encoding": "identity", ...(have > 0 ? { range: `bytes=${have}-` } : {}) },
    });
    for (const [key, value] of response.headers)
      if (key.startsWith("x-linked-") || key === "etag") stated.set(key, value);
    const location = response.headers.get("location");
    if (response.status >= 300 && response.status < 400 && location !== null && redirects < MAX_REDIRECTS) {
      await response.body?.cancel();
      url = new URL(location, url);
      continue;
    }
    if (response.status === 416) {
      // There are more bytes here than the file has, so they belong to another file.
      await response.body?.cancel();
      return open({ host, model } as ModelDownload, name, 0, signal);
    }
    if (response.status === 404) throw new MissingFile(`${name}: the hub has no such file`);
    if (!response.ok) throw new Error(`${name}: the hub answered ${response.status}`);
    return { response, stated };
  }
}

/** Returns the size and digest that the hub states for a file; the digest is empty where the hub states none. */
function statedFile(name: string, response: Response, stated: Headers, have: number): LockedFile {
  const length = Number(response.headers.get("content-length") ?? Number.NaN);
  const linked = Number(stated.get("x-linked-size") ?? Number.NaN);
  const whole = Number(/\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? Number.NaN);
  const size = [linked, whole, response.status === 206 ? length + have : length].find(Number.isSafeInteger);
  if (size === undefined) throw new Error(`${name}: the hub does not say how large it is`);
  const etag = stated.get("x-linked-etag") ?? stated.get("etag") ?? "";
  const digest = /^(?:W\/)?"?([0-9a-f]{64}|[0-9a-f]{40})"?$/.exec(etag)?.[1] ?? "";
  return { size, digest };
}

async function isFile(path: string, expected: LockedFile): Promise<boolean> {
  if (expected.digest === "" || statSync(path).size !== expected.size) return false;
  return (await digestOf(path, expected)) === expected.digest;
}

async function write(part: string, response: Response, size: number, onBytes: (done: number) => void): Promise<void> {
  const goesOn = response.status === 206;
  const file = openSync(part, goesOn ? "a" : "w", 0o600);
  try {
    let done = goesOn ? statSync(part).size : 0;
    onBytes(done);
    for await (const bytes of response.body ?? []) {
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
      done += bytes.length;
      if (done > size) {
        rmSync(part, { force: true });
        throw new Error(`${part}: more than the ${size} bytes came that the hub speaks of`);
      }
      onBytes(done);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Checks a file against what the hub states; a file that differs is fetched anew from its beginning. */
async function checked(part: string, name: string, expected: LockedFile): Promise<LockedFile> {
  if (expected.digest === "") return { size: expected.size, digest: await digestOf(part, expected) };
  const found = await digestOf(part, expected);
  if (found === expected.digest) return expected;
  rmSync(part, { force: true });
  throw new Error(`${name}: its digest is ${found}, the hub says ${expected.digest}`);
}
