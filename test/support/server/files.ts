/** Files over HTTP, for scenarios. */
import type { Client, ErrorBody } from "./client.ts";

export interface FileInfo {
  fileId: string;
  objectId: string;
  rootCid?: string;
  size: number;
  inline: boolean;
  durable: boolean;
  cached: boolean;
  name?: string;
  mime?: string;
  variant?: string;
  variantOf?: string;
}

export interface AttachOptions {
  name?: string;
  mime?: string | null;
  variant?: string;
  variantOf?: string;
}

export const filesPath = (spaceId: string): string => `/v1/spaces/${spaceId}/files`;
export const attachPath = (spaceId: string, objectId: string, options: AttachOptions = {}): string => {
  const query = new URLSearchParams();
  for (const key of ["name", "variant", "variantOf"] as const) {
    const value = options[key];
    if (value !== undefined) query.set(key, value);
  }
  return `/v1/spaces/${spaceId}/objects/${objectId}/files${query.size > 0 ? `?${query}` : ""}`;
};

export async function attach(
  client: Client,
  spaceId: string,
  objectId: string,
  bytes: Uint8Array | ReadableStream<Uint8Array>,
  options: AttachOptions = {},
): Promise<FileInfo> {
  const response = await fetch(client.base + attachPath(spaceId, objectId, options), {
    method: "POST",
    headers: options.mime === null ? {} : { "Content-Type": options.mime ?? "application/octet-stream" },
    body: bytes as BodyInit,
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`attach: ${response.status} ${text}`);
  return JSON.parse(text) as FileInfo;
}

/** Expects a refusal; answers its error. */
export async function attachFails(
  client: Client,
  path: string,
  bytes: Uint8Array,
  headers: Record<string, string>,
): Promise<ErrorBody & { status: number }> {
  const response = await fetch(client.base + path, { method: "POST", headers, body: bytes as BodyInit });
  const { error } = (await response.json()) as { error: ErrorBody };
  return { ...error, status: response.status };
}

export async function content(
  client: Client,
  spaceId: string,
  fileId: string,
  {
    headers = {},
    query = "",
    method = "GET",
  }: { headers?: Record<string, string>; query?: string; method?: string } = {},
): Promise<{ status: number; headers: Headers; bytes: Uint8Array }> {
  const response = await fetch(`${client.base}${filesPath(spaceId)}/${fileId}/content${query}`, { method, headers });
  return { status: response.status, headers: response.headers, bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** Bytes that do not repeat within a chunk and are the same for a seed. */
export function bytesOf(size: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(size);
  const words = new Uint32Array(bytes.buffer, 0, Math.floor(size / 4));
  let state = (seed * 2654435761) >>> 0 || 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state >>> 0;
  }
  for (let i = words.length * 4; i < size; i++) bytes[i] = (i * 31 + seed) & 255;
  return bytes;
}
