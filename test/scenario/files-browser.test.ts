/**
 * ◆ A file of another member is served on the origin of the API: nothing of it may run there, tried in two browsers, and its
 * name and media type are no more than that.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { CHROMIUM, useBrowser } from "../support/page/browser.ts";
import { FIREFOX, startFirefox } from "../support/page/firefox.ts";
import { rule } from "../support/rule.ts";
import type { Page } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import {
  type AttachOptions,
  attach,
  attachFails,
  attachPath,
  bytesOf,
  content,
  type FileInfo,
  filesPath,
} from "../support/server/files.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { skipUnless, skipUnlessGiven } from "../support/skip.ts";

/** A tab of some browser. */
interface Tab extends AsyncDisposable {
  /** Answers why the address did not become the page. */
  goto(url: string): Promise<string | undefined>;
  evaluate(expression: string): Promise<unknown>;
}

const chromium = useBrowser();
let firefox: Awaited<ReturnType<typeof startFirefox>> | undefined;
const BROWSERS = [
  {
    name: "Chromium",
    declare: skipUnless(CHROMIUM !== null, "chromium is not installed"),
    async open(base: string): Promise<Tab> {
      const { page } = await chromium.open(base);
      return {
        goto: (url) =>
          page.goto(url).then(
            () => undefined,
            (error: unknown) => String(error),
          ),
        evaluate: (expression) => page.evaluate(expression),
        [Symbol.asyncDispose]: () => page.close(),
      };
    },
  },
  {
    name: "Firefox",
    declare: skipUnlessGiven(FIREFOX !== null, "firefox is not installed"),
    open: (): Promise<Tab> => firefox!.open(),
  },
];

let server: RunningServer;
let spaceId = "";
let objectId = "";
beforeAll(async () => {
  server = await startServer();
  spaceId = (await createSpace(server.client, "untouched")).id;
  objectId = (await createObject(server.client, spaceId)).id;
  if (FIREFOX) firefox = await startFirefox();
}, 90_000);
afterAll(async () => {
  await firefox?.[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Long enough for a script to have run, if one is going to. */
/** What an attacker would do: say so in the title, and call the API of the origin. */
const SCRIPT = `document.title = "ran"; fetch("/v1/spaces", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "made by a file" }) });`;
const FILES: [name: string, mime: string, text: string][] = [
  ["page.html", "text/html", `<!doctype html><script>${SCRIPT}</script>`],
  [
    "page.xhtml",
    "application/xhtml+xml",
    `<html xmlns="http://www.w3.org/1999/xhtml"><script>${SCRIPT}</script></html>`,
  ],
  ["image.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"><script>${SCRIPT}</script></svg>`],
  ["feed.xml", "text/xml", `<x:script xmlns:x="http://www.w3.org/1999/xhtml">${SCRIPT}</x:script>`],
  ["code.js", "text/javascript", SCRIPT],
  [
    "doc.pdf",
    "application/pdf",
    `%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(${SCRIPT})>>>>endobj\ntrailer<</Root 1 0 R>>`,
  ],
  ["notes.txt", "text/plain", `<script>${SCRIPT}</script>`],
  ["parts", "multipart/x-mixed-replace", `--x\r\nContent-Type: text/html\r\n\r\n<script>${SCRIPT}</script>\r\n--x--`],
  ["liar.png", "image/png", `<!doctype html><script>${SCRIPT}</script>`],
  ["unknown", "application/x-unheard-of", `<!doctype html><script>${SCRIPT}</script>`],
];

/**
 * Frames an address in a page of the origin, and takes it for a script too unless it says that it is one. `isTried` is true
 * once the script has been tried and a page that is framed after it has loaded: a frame that is not shown says nothing itself.
 */
const embed = (url: string, isScript: boolean): string => `(() => {
  const frame = document.createElement("iframe");
  frame.src = ${JSON.stringify(url)};
  document.body.append(frame);
  const last = () => {
    const page = document.createElement("iframe");
    page.src = "/ui";
    page.onload = () => { globalThis.isTried = true; };
    document.body.append(page);
  };
  // A page of the origin that loads a script as its script has decided so itself; anything else is no script.
  if (${isScript}) return last();
  const script = document.createElement("script");
  script.src = ${JSON.stringify(url)};
  script.onload = script.onerror = last;
  document.body.append(script);
})()`;

rule("[FILE-6] what could run is sandboxed, and saved where it is a document; nothing is sniffed", async () => {
  const shown = ["notes.txt", "liar.png", "unknown"];
  for (const [name, mime, text] of FILES) {
    const { fileId } = await attach(server.client, spaceId, objectId, new TextEncoder().encode(text), { name, mime });
    const { headers } = await content(server.client, spaceId, fileId);
    const [said] = headers.get("content-disposition")!.split(";");
    const policy = headers.get("content-security-policy");
    expect([name, headers.get("content-type"), headers.get("x-content-type-options")]).toEqual([name, mime, "nosniff"]);
    expect([name, said]).toEqual([name, shown.includes(name) ? "inline" : "attachment"]);
    expect([name, policy]).toEqual([name, name === "liar.png" ? null : "sandbox; default-src 'none'"]);
  }
});

for (const { name: browser, declare, open } of BROWSERS) {
  for (const [name, mime, text] of FILES) {
    declare(
      `[FILE-6] nothing of ${name} (${mime}) runs when it is opened or framed on the origin, in ${browser}`,
      async () => {
        const bytes = new TextEncoder().encode(text);
        const { fileId } = await attach(server.client, spaceId, objectId, bytes, { name, mime });
        const url = `${server.base}${filesPath(spaceId)}/${fileId}/content`;
        await using tab = await open(server.base);
        // What is sent as an attachment is no page: the browser may say that navigation was aborted by a download.
        const refused = await tab.goto(url);
        if (refused !== undefined) expect(refused).toMatch(/download|abort/i);
        await until(async () => (await tab.evaluate("document.readyState")) === "complete", "the page");
        expect(await tab.evaluate("document.title")).not.toBe("ran");
        expect(await tab.goto(`${server.base}/ui`)).toBeUndefined();
        await tab.evaluate(embed(url, mime === "text/javascript"));
        await until(async () => (await tab.evaluate("globalThis.isTried")) === true, "what was embedded to be tried");
        expect(await tab.evaluate("document.title")).not.toBe("ran");
        const spaces = await server.client.get<{ name?: string }[]>("/v1/spaces");
        expect(spaces.map((space) => space.name)).not.toContain("made by a file");
      },
      60_000,
    );
  }

  declare(
    `[FILE-6] a picture is shown as what it is, in ${browser}`,
    async () => {
      const pixel = Buffer.from(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "base64",
      );
      const { fileId } = await attach(server.client, spaceId, objectId, pixel, {
        name: "pixel.png",
        mime: "image/png",
      });
      await using tab = await open(server.base);
      await tab.goto(`${server.base}/ui`);
      const source = JSON.stringify(`${server.base}${filesPath(spaceId)}/${fileId}/content`);
      const width = await tab.evaluate(
        `(async () => { const image = new Image(); image.src = ${source}; await image.decode(); return image.naturalWidth; })()`,
      );
      expect(width).toBe(1);
    },
    60_000,
  );

  // What the rules are held against: without them, the same file runs.
  declare(
    `[FILE-6] a page that is sent as what it is does run in ${browser}, so that it would show`,
    async () => {
      const plain = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => new Response(FILES[0]![2], { headers: { "content-type": "text/html" } }),
      });
      await using tab = await open(`http://127.0.0.1:${plain.port}`);
      await tab.goto(`http://127.0.0.1:${plain.port}/`);
      expect(await tab.evaluate("document.title")).toBe("ran");
      await plain.stop(true);
    },
    60_000,
  );
}

const NAMES = [
  "../../etc/passwd",
  "a\0b",
  "line\r\nSet-Cookie: x=1",
  "\u202Egnp.exe",
  'quo"te\\back;semi%41',
  "n".repeat(300),
  "Ünïcödé 文件 🗎.txt",
  " leading and trailing ",
];
for (const name of NAMES) {
  rule(
    `[FILE-5] the name ${JSON.stringify(name.slice(0, 24))} comes back exact in JSON and is safe in headers`,
    async () => {
      const { fileId } = await attach(server.client, spaceId, objectId, bytesOf(5_000, 11), { name });
      const { client } = server;
      expect((await client.get<FileInfo>(`${filesPath(spaceId)}/${fileId}`)).name).toBe(name);
      const query = `${attachPath(spaceId, objectId)}/query`;
      const { records } = await client.post<Page>(query, { filter: { id: fileId } });
      expect(records[0]?.["name"]).toBe(name);
      const { headers, status } = await content(client, spaceId, fileId);
      const said = headers.get("content-disposition")!;
      expect(status).toBe(200);
      expect(said).toMatch(
        /^inline; filename="[\x20-\x21\x23-\x5b\x5d-\x7e]*"(; filename\*=UTF-8''[A-Za-z0-9!#$&+.^_`|~%-]*)?$/,
      );
      const encoded = /filename\*=UTF-8''(.*)$/.exec(said)?.[1];
      expect(encoded === undefined ? /filename="(.*)"/.exec(said)?.[1] : decodeURIComponent(encoded)).toBe(name);
      expect(headers.get("set-cookie")).toBeNull();
    },
  );
}

rule("[FILE-1] a name over 4096 bytes is refused", async () => {
  const path = attachPath(spaceId, objectId, { name: "ü".repeat(2049) });
  const refusal = await attachFails(server.client, path, bytesOf(1), {});
  expect(refusal).toMatchObject({ status: 400, code: "request.invalid_field", details: { field: "name" } });
});

rule(
  "[FILE-2] the media type is the declared one without parameters; where that says nothing, name and bytes are asked",
  async () => {
    const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3);
    const text = new TextEncoder().encode("Grüße");
    const cases: [Uint8Array, AttachOptions, string | undefined][] = [
      [text, { mime: "Text/CSV; charset=latin1", name: "a.txt" }, "text/csv"],
      [text, { mime: null, name: "notes.md" }, "text/markdown"],
      [text, { mime: "application/octet-stream", name: "a.JPG" }, "image/jpeg"],
      [png, { mime: null }, "image/png"],
      [text, { mime: null }, "text/plain"],
      [bytesOf(40, 3), { mime: null, name: "x.unheard" }, undefined],
      [text, { mime: "not a type", name: "a.html" }, "text/html"],
    ];
    for (const [bytes, options, expected] of cases)
      expect([options, (await attach(server.client, spaceId, objectId, bytes, options)).mime]).toEqual([
        options,
        expected,
      ]);
  },
);
