import { MIME } from "./file-rules.ts";

const OCTETS = "application/octet-stream";

/** By the name's last ending; what browsers and desktops agree on. */
const BY_ENDING: Readonly<Record<string, string>> = {
  aac: "audio/aac",
  avif: "image/avif",
  bmp: "image/bmp",
  css: "text/css",
  csv: "text/csv",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  epub: "application/epub+zip",
  flac: "audio/flac",
  gif: "image/gif",
  gz: "application/gzip",
  heic: "image/heic",
  htm: "text/html",
  html: "text/html",
  ico: "image/x-icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  m4a: "audio/mp4",
  m4v: "video/mp4",
  md: "text/markdown",
  mjs: "text/javascript",
  mov: "video/quicktime",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  odp: "application/vnd.oasis.opendocument.presentation",
  ods: "application/vnd.oasis.opendocument.spreadsheet",
  odt: "application/vnd.oasis.opendocument.text",
  oga: "audio/ogg",
  ogg: "audio/ogg",
  ogv: "video/ogg",
  opus: "audio/opus",
  pdf: "application/pdf",
  png: "image/png",
  ppt: "application/vnd.ms-powerpoint",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  rtf: "application/rtf",
  svg: "image/svg+xml",
  tar: "application/x-tar",
  tif: "image/tiff",
  tiff: "image/tiff",
  toml: "application/toml",
  txt: "text/plain",
  wasm: "application/wasm",
  wav: "audio/wav",
  weba: "audio/webm",
  webm: "video/webm",
  webp: "image/webp",
  xhtml: "application/xhtml+xml",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  zip: "application/zip",
};

/** First bytes as Latin-1 text at an offset. */
const MAGIC: readonly (readonly [offset: number, bytes: string, mime: string])[] = [
  [0, "\x89PNG\r\n\x1a\n", "image/png"],
  [0, "\xff\xd8\xff", "image/jpeg"],
  [0, "GIF87a", "image/gif"],
  [0, "GIF89a", "image/gif"],
  [8, "WEBP", "image/webp"],
  [8, "WAVE", "audio/wav"],
  [4, "ftypavif", "image/avif"],
  [4, "ftypheic", "image/heic"],
  [4, "ftypM4A", "audio/mp4"],
  [4, "ftypqt", "video/quicktime"],
  [4, "ftyp", "video/mp4"],
  [0, "\x1aE\xdf\xa3", "video/webm"],
  [0, "OggS", "audio/ogg"],
  [0, "fLaC", "audio/flac"],
  [0, "ID3", "audio/mpeg"],
  [0, "%PDF-", "application/pdf"],
  [0, "PK\x03\x04", "application/zip"],
  [0, "\x1f\x8b", "application/gzip"],
];

/** RIFF is a frame for several; the others stand alone. */
const RIFF_ONLY = new Set(["image/webp", "audio/wav"]);

/**
 * The media type to keep (FILE-2): the declared one without its parameters; where there is none, or one that says nothing,
 * what the name's ending says, else what the first bytes say. Undefined: bytes.
 */
export function chooseMime(declared: string | null, name: string | undefined, head: Uint8Array): string | undefined {
  const given = (declared ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (given !== OCTETS && MIME.test(given)) return given;
  const ending = name === undefined ? "" : name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  if (name?.includes(".") && Object.hasOwn(BY_ENDING, ending)) return BY_ENDING[ending];
  return sniff(head);
}

function sniff(head: Uint8Array): string | undefined {
  const start = Buffer.from(head.subarray(0, 64)).toString("latin1");
  for (const [offset, bytes, mime] of MAGIC) {
    if (!start.startsWith(bytes, offset)) continue;
    if (!RIFF_ONLY.has(mime) || start.startsWith("RIFF")) return mime;
  }
  return isPlainText(head) ? "text/plain" : undefined;
}

/** Valid UTF-8 without control characters; the last character may be cut. */
function isPlainText(head: Uint8Array): boolean {
  if (head.length === 0) return false;
  const text = new TextDecoder().decode(head, { stream: true });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what text does not hold.
  return !/[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ufffd]/.test(text);
}
