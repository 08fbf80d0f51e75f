/** `/ui` and `/swagger`: served from the executable, with nothing that would be fetched from elsewhere. */
import { describe, expect } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { rule, useServer } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { until } from "../support/server/client.ts";
import { BINARY, childEnv, startServer } from "../support/server/server.ts";

const shared = useServer({ account: false });

interface Asset {
  path: string;
  type: string;
  text: string;
}

/** The page and everything its HTML and styles refer to, fetched as a browser would. */
async function crawl(start: string): Promise<{ html: string; headers: Headers; assets: Asset[] }> {
  const page = await shared.client.request("GET", start, { redirect: "follow" });
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toStartWith("text/html");
  const assets: Asset[] = [];
  const queue = references(page.text).map((reference) => new URL(reference, shared.server.base + start));
  const seen = new Set<string>();
  for (const url of queue) {
    expect([start, url.host]).toEqual([start, shared.server.address]);
    if (seen.has(url.pathname)) continue;
    seen.add(url.pathname);
    const reply = await shared.client.request("GET", url.pathname + url.search);
    expect([url.pathname, reply.status]).toEqual([url.pathname, 200]);
    const type = reply.headers.get("content-type") ?? "";
    assets.push({ path: url.pathname, type, text: reply.text });
    if (type.startsWith("text/css"))
      queue.push(...styleReferences(reply.text).map((reference) => new URL(reference, url)));
  }
  return { html: page.text, headers: page.headers, assets };
}

/** Whatever a browser would load by itself: src and href of link, script, img and the like (not of anchors). */
function references(html: string): string[] {
  const found: string[] = [];
  for (const tag of html.match(/<(script|link|img|iframe|source|video|audio|object|embed)\b[^>]*>/gi) ?? []) {
    const value = /\b(?:src|href|data)\s*=\s*["']([^"']+)["']/i.exec(tag)?.[1];
    if (value && !value.startsWith("data:")) found.push(value);
  }
  return found;
}
function styleReferences(css: string): string[] {
  const urls = [...css.matchAll(/url\(\s*["']?([^"')]+)["']?\s*\)/g)].map((match) => match[1]!);
  const imports = [...css.matchAll(/@import\s+["']([^"']+)["']/g)].map((match) => match[1]!);
  return [...urls, ...imports].filter((reference) => !reference.startsWith("data:") && !reference.startsWith("#"));
}

const CDN = /(unpkg\.com|jsdelivr\.net|cdnjs\.cloudflare\.com|fonts\.(googleapis|gstatic)\.com|esm\.sh|skypack\.dev)/;

for (const path of ["/ui", "/ui/", "/swagger"]) {
  describe(path, () => {
    rule(`[PAGE-1] ${path} loads with everything it refers to, all from this server`, async () => {
      const { html, assets } = await crawl(path);
      expect(html).toMatch(/<html/i);
      expect(assets.some((asset) => /javascript/.test(asset.type))).toBe(true);
      for (const asset of assets) {
        expect([asset.path, asset.text.length > 0]).toEqual([asset.path, true]);
        expect([asset.path, CDN.test(asset.text)]).toEqual([asset.path, false]);
      }
      expect(CDN.test(html)).toBe(false);
      if (path.startsWith("/ui")) for (const asset of assets) expect(asset.path).toStartWith("/ui/");
    });

    rule(`[PAGE-1] ${path} has a content security policy that allows no other host and no inline script`, async () => {
      const { html, headers } = await crawl(path);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toMatch(/default-src '(self|none)'/);
      expect(policy).not.toMatch(/https?:\/\/(?!127\.0\.0\.1|localhost)|\*/);
      const scripts = /script-src ([^;]+)/.exec(policy)?.[1] ?? /default-src ([^;]+)/.exec(policy)![1]!;
      expect(scripts).not.toContain("'unsafe-eval'");
      if (!/'nonce-|'sha256-/.test(scripts)) {
        expect(scripts).not.toContain("'unsafe-inline'");
        expect(html).not.toMatch(/<script(?![^>]*\bsrc=)[^>]*>\s*\S/i);
        expect(html).not.toMatch(/\son[a-z]+\s*=\s*["']/i);
      }
    });
  });
}

rule("[API-12] the documentation page points at the server's own document", async () => {
  const { html, assets } = await crawl("/swagger");
  const own =
    html +
    assets
      .filter((asset) => asset.text.length < 50_000)
      .map((asset) => asset.text)
      .join("\n");
  expect(own).toContain("/v1/openapi.json");
});

rule("[PAGE-1] pages cannot be framed by other sites and are not sniffed", async () => {
  const { headers } = await crawl("/ui/");
  const policy = headers.get("content-security-policy") ?? "";
  expect(/frame-ancestors '(none|self)'/.test(policy) || headers.get("x-frame-options") !== null).toBe(true);
  expect(headers.get("x-content-type-options")).toBe("nosniff");
});

rule(
  "[SRV-14] dist/svc copied alone into an empty directory serves API and pages, without Bun or node_modules",
  async () => {
    using dir = scratchDir();
    const copy = join(dir.path, "svc");
    cpSync(BINARY, copy);
    const child = Bun.spawn([copy, "run", "--addr", "127.0.0.1:0", "--data-dir", join(dir.path, "data")], {
      cwd: dir.path,
      env: { PATH: "/nonexistent", HOME: dir.path, SVC_P2P_ENABLED: "false", SVC_RUNTIME_ADDR: "127.0.0.1:0" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    try {
      const reader = child.stdout.getReader();
      let text = "";
      while (!/LISTENING \S+\n/.test(text)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`ended before LISTENING: ${await new Response(child.stderr).text()}`);
        text += new TextDecoder().decode(value);
      }
      const base = `http://${/LISTENING (\S+)/.exec(text)![1]}`;
      const made = await fetch(`${base}/v1/auth`, { method: "POST" });
      expect(made.status).toBe(200);
      for (const path of ["/ui/", "/swagger", "/v1/openapi.json", "/v1/account"]) {
        expect([path, (await fetch(base + path)).status]).toEqual([path, 200]);
      }
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
  },
);

describe("/", () => {
  rule("[SRV-13] / leads to /ui, and is unknown where the page is off", async () => {
    for (const method of ["GET", "HEAD"]) {
      const reply = await shared.client.request(method, "/", { redirect: "manual" });
      expect([method, reply.status, reply.headers.get("location")]).toEqual([method, 302, "/ui"]);
    }
    await using off = await startServer({ account: false, env: { SVC_WEB_UI_ENABLED: "false" } });
    await off.client.fails("GET", "/", undefined, 404, "request.not_found");
  });

  rule("[SRV-13] a start in a terminal says where the page is, one without does not", async () => {
    await using quiet = await startServer({ account: false });
    expect(quiet.stderr()).not.toContain("/ui");
    using home = scratchDir();
    let shown = "";
    const child = Bun.spawn([BINARY, "run", "--addr", "127.0.0.1:0"], {
      env: childEnv(home.path),
      terminal: {
        cols: 200,
        data: (_, bytes) => {
          shown += new TextDecoder().decode(bytes);
        },
      },
    });
    try {
      await until(() => shown.includes("/ui"), "the page's address");
      const address = /LISTENING (\S+)/.exec(shown)?.[1];
      expect(shown).toContain(`The page is at http://${address}/ui`);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
  });
});
