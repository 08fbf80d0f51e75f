import { expect, test } from "bun:test";
import { docsPages } from "./docs-pages.ts";

const bodyOf = async (path: string): Promise<string> => String((await docsPages.find(path))?.body);

test("[API-12] the page loads the viewer's files and the script that starts it, and names no host", async () => {
  const [html, start] = await Promise.all([bodyOf("/swagger"), bodyOf("/swagger/start.js")]);
  const scripts = [...html.matchAll(/<script[^>]*>/g)].map(String);
  expect(scripts).toEqual(['<script src="/swagger/viewer.js">', '<script src="/swagger/start.js">']);
  expect(html).toContain('<link rel="stylesheet" href="/swagger/viewer.css">');
  expect(start).toContain('url: "/v1/openapi.json"');
  expect(html + start).not.toMatch(/https?:/);
});

test("[API-12] the page is there with and without a slash, other paths below it are not", async () => {
  expect(await bodyOf("/swagger/")).toBe(await bodyOf("/swagger"));
  for (const path of ["/swagger/json", "/swagger/viewer.css.map"]) expect(await docsPages.find(path)).toBeUndefined();
});
