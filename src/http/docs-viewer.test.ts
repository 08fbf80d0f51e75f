import { expect, test } from "bun:test";
import { docsPages } from "./docs-pages.ts";
import { renderDocsViewer } from "./docs-viewer.ts";

test("[API-12] the plugin's page loads the viewer it is given, has no inline script and names no host", async () => {
  const { html, start } = await renderDocsViewer({
    description: "/d.json",
    viewerScript: "/v.js",
    viewerStyle: "/v.css",
    start: "/s.js",
  });
  expect([...html.matchAll(/<script[^>]*>/g)].map(String)).toEqual(['<script src="/v.js">', '<script src="/s.js">']);
  expect(html).toContain('<link rel="stylesheet" href="/v.css" />');
  expect(html).toContain('id="swagger-ui"');
  expect(start).toContain('SwaggerUIBundle({"url":"/d.json","dom_id":"#swagger-ui"');
  expect(html + start).not.toMatch(/https?:/);
});

test.each(["/swagger/json", "/swagger/", "/swagger"])(
  "[API-12] %p is the page or nothing, never the plugin's document",
  async (path) => {
    const page = await docsPages.find(path);
    if (path === "/swagger/json") expect(page).toBeUndefined();
    else expect(String(page?.body)).toContain("/swagger/start.js");
  },
);
