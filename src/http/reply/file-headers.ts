/**
 * The headers that browsers get with a file's bytes. Any member of a space may have written the bytes, and they are
 * served on the origin of the API and the page, so nothing in them may run there (docs/files.md).
 */
const OCTETS = "application/octet-stream";
/** Formats that browsers decode and never execute. */
const RASTER = new Set([
  "png",
  "jpeg",
  "gif",
  "webp",
  "avif",
  "bmp",
  "x-icon",
  "vnd.microsoft.icon",
  "apng",
  "heic",
  "tiff",
]);
/**
 * Documents that can hold programs, and formats that a browser splits into parts of other types. Browsers save these and
 * never show them.
 */
const ACTIVE =
  /^(text\/(html|xml|xsl|javascript|ecmascript|vbscript|cache-manifest)|application\/(xhtml|xml|xslt|pdf|javascript|ecmascript|x-javascript|x-shockwave-flash|java-archive|hta|mathml|x-x509-ca-cert).*|image\/svg.*|.*\+xml|multipart\/.*|message\/.*)$/;
const SANDBOX = "sandbox; default-src 'none'";

const isMedia = (mime: string): boolean =>
  mime.startsWith("audio/") ||
  mime.startsWith("video/") ||
  (mime.startsWith("image/") && RASTER.has(mime.slice("image/".length)));

/** Headers of a file's content, whatever part of it is sent. */
export function fileHeaders(file: { mime?: string | undefined; name?: string | undefined; tag: string }): Headers {
  const mime = file.mime ?? OCTETS;
  const headers = new Headers({
    "content-type": mime,
    etag: `"${file.tag}"`,
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    // Every device asks its own server; content of a space stays out of shared caches.
    "cache-control": "private, no-cache",
  });
  if (!isMedia(mime)) headers.set("content-security-policy", SANDBOX);
  const isActive = ACTIVE.test(mime);
  if (isActive || file.name !== undefined)
    headers.set("content-disposition", disposition(isActive ? "attachment" : "inline", file.name));
  return headers;
}

/**
 * RFC 6266: the exact name is encoded as in RFC 8187. Clients that only know `filename` get ASCII without any character
 * that could end the value.
 */
function disposition(kind: "inline" | "attachment", name: string | undefined): string {
  if (name === undefined) return kind;
  const plain = name.replace(/[^\x20-\x7e]|["\\%;/]/gu, "_");
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return encoded === name
    ? `${kind}; filename="${plain}"`
    : `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** Whether a list of entity tags names this one; `*` names any. A weak tag counts only for If-None-Match. */
export function namesTag(header: string | null, tag: string, weakly: boolean): boolean {
  if (header === null) return false;
  if (header.trim() === "*") return weakly;
  return header
    .split(",")
    .map((each) => each.trim())
    .some((each) => each === `"${tag}"` || (weakly && each === `W/"${tag}"`));
}
