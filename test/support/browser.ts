/** A headless Chromium for tests of the pages; what it complains of or fetches from elsewhere is kept. */
import { afterAll, beforeAll } from "bun:test";
import { type Browser, chromium, type Page } from "playwright-core";

/** Path of Debian's Chromium, or null where there is none. */
export const CHROMIUM = Bun.which("chromium");

/** No sandbox (tests run as root), and no traffic of the browser's own. */
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings of the console, uncaught exceptions, failed requests. */
  readonly complaints: readonly string[];
  /** Requests to anything but the server. */
  readonly outside: readonly string[];
  /** Takes back the complaints that match, and says how many there were. */
  forgive(pattern: RegExp): number;
}

/** One browser for a file; none is started where there is no Chromium and its tests are skipped. */
export function useBrowser(): { open(base: string): Promise<WatchedPage> } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (CHROMIUM) browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
  }, 30_000);
  return {
    async open(base) {
      if (!browser) throw new Error("there is no Chromium on this machine");
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      page.setDefaultTimeout(20_000);
      return watch(page, base);
    },
  };
}

function watch(page: Page, base: string): WatchedPage {
  const complaints: string[] = [];
  const outside: string[] = [];
  page.on("console", (message) => {
    const type = message.type();
    if (type === "error" || type === "warning") complaints.push(`${type}: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => complaints.push(`uncaught: ${error.message}`));
  page.on("requestfailed", (request) => {
    // A stream is ended by leaving it.
    const reason = request.failure()?.errorText ?? "";
    if (reason !== "net::ERR_ABORTED") complaints.push(`failed: ${request.url()} ${reason}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== base && url.protocol !== "data:" && url.protocol !== "blob:") outside.push(request.url());
  });
  const forgive = (pattern: RegExp): number => {
    const kept = complaints.filter((complaint) => !pattern.test(complaint));
    return complaints.splice(0, complaints.length, ...kept).length - kept.length;
  };
  return { page, complaints, outside, forgive };
}
