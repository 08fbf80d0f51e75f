import { createHash } from "node:crypto";
import viewerStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import viewerScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import type { Page, PageSet } from "./page.ts";

const PATHS = {
  page: "/swagger",
  start: "/swagger/start.js",
  viewerScript: "/swagger/viewer.js",
  viewerStyle: "/swagger/viewer.css",
  description: "/v1/openapi.json",
} as const;

/** The whole page. Without an icon browsers ask for one, and get 404. */
const HTML_TEXT = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>svc API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="${PATHS.viewerStyle}">
  </head>
  <body>
    <div id="viewer"></div>
    <script src="${PATHS.viewerScript}"></script>
    <script src="${PATHS.start}"></script>
  </body>
</html>
`;

/** In a file of its own, since the policy allows no inline script. The viewer does not follow the system's colours itself. */
const START_TEXT = `const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  url: "${PATHS.description}",
  dom_id: "#viewer",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  validatorUrl: "none",
});
`;

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const STYLE = "text/css; charset=utf-8";

const contents: Readonly<Record<string, { type: string; read(): Promise<string | Uint8Array> }>> = {
  [PATHS.page]: { type: HTML, read: async () => HTML_TEXT },
  [PATHS.start]: { type: SCRIPT, read: async () => START_TEXT },
  [PATHS.viewerScript]: { type: SCRIPT, read: () => Bun.file(viewerScript).bytes() },
  [PATHS.viewerStyle]: { type: STYLE, read: () => Bun.file(viewerStyle).bytes() },
};
const etagByPath = new Map<string, string>();

/** The documentation page: a viewer of `/v1/openapi.json`, all of which is in the executable. */
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
  owns: (pathname) => pathname === PATHS.page || pathname.startsWith(`${PATHS.page}/`),
  async find(pathname): Promise<Page | undefined> {
    const path = pathname === `${PATHS.page}/` ? PATHS.page : pathname;
    if (!Object.hasOwn(contents, path)) return undefined;
    const { type, read } = contents[path]!;
    const body = await read();
    return { type, body, etag: etagOf(path, body), cacheControl: "no-cache" };
  },
};

/** The viewer is large and does not change, so it is hashed once and not kept in memory. */
function etagOf(path: string, body: string | Uint8Array): string {
  let etag = etagByPath.get(path);
  if (etag === undefined) {
    etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    etagByPath.set(path, etag);
  }
  return etag;
}
