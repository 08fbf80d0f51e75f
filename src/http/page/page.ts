/** A file served to a browser beside the API. */
export interface Page {
  readonly body: string | Uint8Array;
  /** Content-Type. */
  readonly type: string;
  /** Strong ETag, quotes included. */
  readonly etag: string;
  /** Cache-Control. */
  readonly cacheControl: string;
}

/** Pages by URL path, loaded when the first of them is requested. */
export interface PageSet {
  /** Whether a path may belong to the set; nothing is loaded for other paths. */
  owns(pathname: string): boolean;
  find(pathname: string): Promise<Page | undefined>;
  /** Content-Security-Policy of its documents. */
  readonly policy: string;
  /** Other paths that redirect to its pages: path → target. */
  readonly redirects?: Readonly<Record<string, string>>;
}

/**
 * Answers a request for a page: 200, 304 when the browser has it, or 302. Resolves to undefined where no set has the
 * path.
 */
export async function servePage(
  sets: readonly PageSet[],
  request: Request,
  pathname: string,
): Promise<Response | undefined> {
  const location = sets.map(({ redirects }) => redirects?.[pathname]).find((to) => to !== undefined);
  if (location !== undefined) return new Response(null, { status: 302, headers: { location } });
  const set = sets.find((candidate) => candidate.owns(pathname));
  const page = await set?.find(pathname);
  if (!set || !page) return undefined;
  const headers: Record<string, string> = {
    "content-type": page.type,
    "content-length": String(Buffer.byteLength(page.body)),
    "cache-control": page.cacheControl,
    etag: page.etag,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    ...(page.type.startsWith("text/html") ? { "content-security-policy": set.policy } : {}),
  };
  const known = request.headers.get("if-none-match")?.split(/\s*,\s*/) ?? [];
  if (known.includes(page.etag) || known.includes(`W/${page.etag}`))
    return new Response(null, { status: 304, headers });
  return new Response(page.body as BodyInit, { headers });
}
