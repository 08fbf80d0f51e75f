/** The task board of docs/examples/board, as somebody would build and use it: types, a script, a page in two tabs. */
import { describe, expect } from "bun:test";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { freePort } from "../support/network/free-port.ts";
import { CHROMIUM, useBrowser } from "../support/page/browser.ts";
import { rule } from "../support/rule.ts";
import { type ScratchDir, scratchDir } from "../support/scratch.ts";
import { clientTypes, compilerFaults } from "../support/server/client-types.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";

const ROOT = resolve(import.meta.dir, "../..");
const chromium = useBrowser();
const inBrowser = skipUnless(CHROMIUM !== null, "chromium is not installed");

/** A copy of the example with its types, as `bun install` and `bun run types` leave it. */
async function setUp(server: RunningServer): Promise<ScratchDir> {
  const folder = scratchDir("svc-board");
  cpSync(join(ROOT, "docs/examples/board"), folder.path, { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  const types = await clientTypes(await server.client.get<object>("/v1/openapi.json"));
  writeFileSync(join(folder.path, "svc-api.d.ts"), types);
  return folder;
}

/** Runs the example's script; gives what it printed. Throws what it complained of. */
async function script(folder: ScratchDir, server: string, ...args: string[]): Promise<string> {
  const child = Bun.spawn([process.execPath, "tasks.ts", ...args], {
    cwd: folder.path,
    env: { ...process.env, SVC_URL: server },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, complaint] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(complaint);
  return out.trim();
}

/** Serves the example's page at an origin of its own. */
async function serve(folder: ScratchDir, port: number): Promise<AsyncDisposable & { readonly origin: string }> {
  const child = Bun.spawn([process.execPath, "serve.ts"], {
    cwd: folder.path,
    env: { ...process.env, PORT: String(port), NODE_ENV: "production" },
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  return {
    origin: new TextDecoder().decode(value).trim(),
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await child.exited;
    },
  };
}

const card = (page: Page, column: string, title: string) => page.locator(`#${column} li`, { hasText: title });

describe("the task board", () => {
  rule("[API-12] its types are used as they are", async () => {
    await using server = await startServer();
    using folder = await setUp(server);
    expect(await compilerFaults(folder.path, ["-p", "tsconfig.json"])).toEqual([]);
    const sources = [...new Bun.Glob("*.ts").scanSync(folder.path)].filter((name) => !name.endsWith(".d.ts"));
    for (const name of sources) {
      const text = await Bun.file(join(folder.path, name)).text();
      const code = text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, "");
      expect([name, /[:<,|&(]\s*any\b|\bas (?!const\b)|@ts-|\w!\./.exec(code)?.[0]]).toEqual([name, undefined]);
    }
  });

  inBrowser(
    "[LIVE-5] two tabs show at once what a script and the other tab do; eight share a connection, which outlives its tab and the server",
    async () => {
      const port = await freePort();
      const addr = `127.0.0.1:${await freePort()}`;
      using root = scratchDir("svc-board-root");
      const options = {
        dataDir: root.path,
        addr,
        env: { SVC_HTTP_ALLOWED_ORIGINS: `http://localhost:${port}`, SVC_LOG_LEVEL: "debug" },
      };
      let server = await startServer(options);
      try {
        using folder = await setUp(server);
        await using site = await serve(folder, port);
        const first = await script(folder, server.base, "add", "Plan the garden");
        await using tabs = await chromium.tabs();
        const address = `${site.origin}/?server=${server.base}`;
        const [left, right] = [await tabs.open(server.base), await tabs.open(server.base)];
        for (const { page } of [left, right]) {
          await page.goto(address);
          await card(page, "todo", "Plan the garden").waitFor();
        }

        await script(folder, server.base, "move", first, "doing");
        for (const { page } of [left, right]) await card(page, "doing", "Plan the garden").waitFor();
        await left.page.getByLabel("Task").fill("Buy seeds");
        await left.page.getByRole("button", { name: "Add" }).click();
        await card(right.page, "todo", "Buy seeds").getByRole("button", { name: "→ done" }).click();
        await card(left.page, "done", "Buy seeds").waitFor();
        const listed = (await script(folder, server.base)).split("\n").map((line) => line.slice(line.indexOf(" ") + 1));
        expect(listed).toEqual(["doing Plan the garden", "done Buy seeds"]);
        expect([left.complaints, right.complaints]).toEqual([[], []]);

        // More tabs than a browser has connections; the first, which holds theirs, goes.
        const more: Page[] = [];
        while (more.length < 6) more.push((await tabs.open(server.base)).page);
        for (const page of more) await page.goto(address);
        for (const page of more) await card(page, "done", "Buy seeds").waitFor();
        await left.page.close();
        await script(folder, server.base, "move", first, "done");
        for (const page of [right.page, ...more]) await card(page, "done", "Plan the garden").waitFor();
        expect(server.stderr().match(/ path=\/v1\/streams status=200 /g)?.length).toBe(2);

        await server.stop();
        for (const page of [right.page, ...more]) await page.getByRole("status").getByText("Reconnecting").waitFor();
        server = await startServer(options);
        await script(folder, server.base, "add", "After the restart");
        for (const page of [right.page, ...more]) await card(page, "todo", "After the restart").waitFor();
      } finally {
        await server[Symbol.asyncDispose]();
      }
    },
    120_000,
  );

  inBrowser("[API-9] a page that is not let in says so, and the server's log how to let it in", async () => {
    await using server = await startServer();
    using folder = await setUp(server);
    await using site = await serve(folder, await freePort());
    const { page } = await chromium.open(server.base);
    await page.goto(`${site.origin}/?server=${server.base}`);
    await page.getByRole("status").getByText(`No server at ${server.base} that lets us in`).waitFor();
    expect(server.stderr()).toContain(`refused origin ${site.origin}; http.allowedOrigins would allow it`);
    await page.close();
  });

  rule("its script says what went wrong", async () => {
    await using server = await startServer();
    using folder = await setUp(server);
    const complaint = (...args: string[]) => script(folder, server.base, ...args).then(String, String);
    expect(await complaint("move", "nope", "doing")).toContain("there is no task nope");
    expect(await complaint("move", "nope", "nowhere")).toContain("there are the columns todo, doing, done");
    await server.stop();
    expect(await complaint()).toContain("Unable to connect");
  });
});
