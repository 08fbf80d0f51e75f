import { createHash } from "node:crypto";
import viewerStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import viewerScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import type { Page, PageSet } from "./page.ts";

const DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/swagger/viewer.css">
</head>
<body>
<div id="viewer"></div>
<noscript>The documentation viewer needs JavaScript. The description itself is at /v1/openapi.json.</noscript>
<script src="/swagger/viewer.js"></script>
<script src="/swagger/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: "/v1/openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const STYLE = "text/css; charset=utf-8";

const contents: Readonly<Record<string, { type: string; read(): string | Promise<Uint8Array> }>> = {
  "/swagger": { type: HTML, read: () => DOCUMENT },
  "/swagger/start.js": { type: SCRIPT, read: () => START },
  "/swagger/viewer.js": { type: SCRIPT, read: () => Bun.file(viewerScript).bytes() },
  "/swagger/viewer.css": { type: STYLE, read: () => Bun.file(viewerStyle).bytes() },
};
const etagByPath = new Map<string, string>();

/** The documentation page: a viewer of `/v1/openapi.json` that comes whole from the executable. */
export const docsPages: PageSet = {
  // The viewer sets style attributes and shows icons as data URLs.
  policy: [
    "default-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  owns: (pathname) => pathname === "/swagger" || pathname.startsWith("/swagger/"),
  async find(pathname): Promise<Page | undefined> {
    const path = pathname === "/swagger/" ? "/swagger" : pathname;
    if (!Object.hasOwn(contents, path)) return undefined;
    const { type, read } = contents[path]!;
    const body = await read();
    return { type, body, etag: etagOf(path, body), cacheControl: "no-cache" };
  },
};

/** The viewer is large and does not change: it is hashed once and not kept in memory. */
function etagOf(path: string, body: string | Uint8Array): string {
  let etag = etagByPath.get(path);
  if (etag === undefined) {
    etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    etagByPath.set(path, etag);
  }
  return etag;
}
