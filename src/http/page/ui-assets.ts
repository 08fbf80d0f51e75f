/** The page as the server serves it: every file is in memory with its type and ETag. */
import { createHash } from "node:crypto";
import type { UiFile } from "./ui-build.ts";

export interface UiAsset {
  body: string;
  /** Content-Type. */
  type: string;
  /** Strong ETag, quotes included. */
  etag: string;
  /** Cache-Control: the names of scripts and styles carry their hash, the page's name does not. */
  cacheControl: string;
}

let assets: Promise<ReadonlyMap<string, UiAsset>> | undefined;

/**
 * Everything below `/ui`, keyed by URL path (`/ui` is the page). Made once, at the first call; a failure (possible
 * only from source, where the page is built on the spot) rejects and is tried again at the next call.
 */
export function uiAssets(): Promise<ReadonlyMap<string, UiAsset>> {
  assets ??= loadAssets().catch((error: unknown) => {
    assets = undefined;
    throw error;
  });
  return assets;
}

async function loadAssets(): Promise<ReadonlyMap<string, UiAsset>> {
  const { readUiFiles } = await import("./ui-files.ts");
  return new Map((await readUiFiles()).map((file) => [file.path, toAsset(file)]));
}

function toAsset({ path, type, body }: UiFile): UiAsset {
  const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  const cacheControl = path === "/ui" ? "no-cache" : "public, max-age=31536000, immutable";
  return { body, type, etag, cacheControl };
}
