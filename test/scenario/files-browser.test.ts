/** ◆ A file of another member is served on the origin of the API: nothing of it may run there. Tried in a browser. */
import { afterAll, beforeAll, expect } from "bun:test";
import { CHROMIUM, useBrowser } from "../support/browser.ts";
import { attach, filesPath } from "../support/files.ts";
import { createObject, createSpace } from "../support/fixtures.ts";
import { type RunningServer, startServer } from "../support/server.ts";
import { skipUnless } from "../support/skip.ts";

const browser = useBrowser();
const declare = skipUnless(CHROMIUM !== null, "chromium is not installed");

let server: RunningServer;
let spaceId = "";
let objectId = "";
beforeAll(async () => {
  if (CHROMIUM === null) return;
  server = await startServer();
  spaceId = (await createSpace(server.client, "untouched")).id;
  objectId = (await createObject(server.client, spaceId)).id;
}, 60_000);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

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

for (const [name, mime, text] of FILES) {
  declare(`[files] nothing of ${name} (${mime}) runs when it is opened or framed on the origin`, async () => {
    const { fileId } = await attach(server.client, spaceId, objectId, new TextEncoder().encode(text), { name, mime });
    const url = `${server.base}${filesPath(spaceId)}/${fileId}/content`;
    const { page } = await browser.open(server.base);
    try {
      // What is sent as an attachment is no page: the browser says that navigation was aborted by a download.
      await page.goto(url).catch((error: unknown) => expect(String(error)).toMatch(/download|ERR_ABORTED/i));
      await page.waitForTimeout(150);
      expect(await page.title()).not.toBe("ran");
      await page.goto(`${server.base}/ui`);
      await page.evaluate(
        ([source, isScript]) => {
          const frame = document.createElement("iframe");
          frame.src = source;
          document.body.append(frame);
          // A page of the origin that loads a script as its script has decided so itself; anything else is no script.
          if (isScript) return;
          const script = document.createElement("script");
          script.src = source;
          document.body.append(script);
        },
        [url, mime === "text/javascript"] as const,
      );
      await page.waitForTimeout(250);
      expect(await page.title()).not.toBe("ran");
    } finally {
      await page.close();
    }
    const spaces = await server.client.get<{ name?: string }[]>("/v1/spaces");
    expect(spaces.map((space) => space.name)).not.toContain("made by a file");
  });
}

declare("[files] a picture is shown as what it is", async () => {
  const pixel = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  const { fileId } = await attach(server.client, spaceId, objectId, pixel, { name: "pixel.png", mime: "image/png" });
  const { page } = await browser.open(server.base);
  await page.goto(`${server.base}/ui`);
  const width = await page.evaluate(
    async (source) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      return image.naturalWidth;
    },
    `${server.base}${filesPath(spaceId)}/${fileId}/content`,
  );
  expect(width).toBe(1);
  await page.close();
});
