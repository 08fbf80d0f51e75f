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

/** How a page is looked at. */
interface Look {
  /** Default: a desktop's. */
  readonly size?: { readonly width: number; readonly height: number };
}

/** Tabs of one browser profile: they share its connections, workers and locks. */
interface Tabs extends AsyncDisposable {
  open(base: string): Promise<WatchedPage>;
}

interface TestBrowser {
  /** A page in a profile of its own. */
  open(base: string, look?: Look): Promise<WatchedPage>;
  /** `prepare` runs in every page before its own scripts. */
  tabs(prepare?: () => void): Promise<Tabs>;
}

const DESKTOP = { width: 1280, height: 900 };

/** One browser for a file; none is started where there is no Chromium and its tests are skipped. */
export function useBrowser(): TestBrowser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (CHROMIUM) browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
  }, 30_000);
  const started = (): Browser => {
    if (!browser) throw new Error("there is no Chromium on this machine");
    return browser;
  };
  return {
    async open(base, { size = DESKTOP } = {}) {
      return watch(await started().newPage({ viewport: size }), base);
    },
    async tabs(prepare) {
      const context = await started().newContext({ viewport: DESKTOP });
      if (prepare) await context.addInitScript(prepare);
      return {
        open: async (base) => watch(await context.newPage(), base),
        [Symbol.asyncDispose]: () => context.close(),
      };
    },
  };
}

function watch(page: Page, base: string): WatchedPage {
  page.setDefaultTimeout(20_000);
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
