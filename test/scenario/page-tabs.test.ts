/** Many tabs of the page in one browser: they share one connection for everything they follow. */
import { expect } from "bun:test";
import { freePort } from "../support/network/free-port.ts";
import { CHROMIUM, useBrowser, type WatchedPage } from "../support/page/browser.ts";
import { scratchDir } from "../support/scratch.ts";
import { until } from "../support/server/client.ts";
import { createObject, createSpace, named } from "../support/server/fixtures.ts";
import { recentServerLogs, startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";

const browser = useBrowser();
const declare = skipUnless(CHROMIUM !== null, "chromium is not installed");

const TABS = 20;
/** An object's page follows its row and its messages: two streams. */
const KINDS = [
  ["a shared worker", undefined],
  ["a leading tab, where there are no shared workers", () => void Reflect.deleteProperty(globalThis, "SharedWorker")],
] as const;

for (const [keeper, prepare] of KINDS) {
  declare(
    `[PAGE-3] twenty tabs are live over one connection, kept by ${keeper}; it outlives the first tab and the server`,
    async () => {
      using root = scratchDir("svc-tabs");
      const addr = `127.0.0.1:${await freePort()}`;
      const options = { dataDir: root.path, addr, env: { SVC_LOG_LEVEL: "debug" } };
      let server = await startServer(options);
      await using tabs = await browser.tabs(prepare);
      try {
        const space = await createSpace(server.client, "Many");
        const { id } = await createObject(server.client, space.id, { types: ["chat"], ...named("Kitchen") });
        const opened: WatchedPage[] = [];
        for (let n = 0; n < TABS; n++) {
          const tab = await tabs.open(server.base);
          await tab.page.goto(`${server.base}/ui#/spaces/${space.id}/objects/${id}`);
          opened.push(tab);
        }
        const say = async ({ page }: WatchedPage, text: string) => {
          await page.getByLabel("Message", { exact: true }).fill(text);
          await page.getByRole("button", { name: "Send", exact: true }).click();
        };
        const heard = (text: string, by: readonly WatchedPage[]) =>
          Promise.all(by.map(({ page }) => page.locator(".chat-message").getByText(text).waitFor()));
        await say(opened[0]!, "from the first");
        await heard("from the first", opened);
        await say(opened[TABS - 1]!, "from the last");
        await heard("from the last", opened);
        expect(server.stderr().match(/ path=\/v1\/streams status=200 /g)?.length).toBe(1);
        expect(server.stderr()).not.toMatch(/ path=\S+\/subscribe /);

        const [first, ...others] = opened;
        await first!.page.close();
        await say(others[0]!, "without the first");
        await heard("without the first", others);

        // A frozen tab neither follows nor leads.
        const frozen = await others[0]!.page.context().newCDPSession(others[0]!.page);
        await frozen.send("Page.setWebLifecycleState", { state: "frozen" });
        await say(others[1]!, "while one is frozen");
        await heard("while one is frozen", others.slice(1));
        await frozen.send("Page.setWebLifecycleState", { state: "active" });
        await heard("while one is frozen", others);

        if (prepare) {
          const leader = await leaderOf(others[1]!);
          const ids = await Promise.all(others.map(clientIdOf));
          const leading = others[ids.indexOf(leader)];
          if (!leading) throw new Error("none of the open tabs leads");
          await hide(leading);
          const shown = others.filter((tab) => tab !== leading);
          await until(async () => ![undefined, leader].includes(await leaderOf(shown[0]!)), "another to lead");
          await say(shown.at(-1)!, "after the leader was hidden");
          await heard("after the leader was hidden", shown);
          await hide(leading, false);
          await heard("after the leader was hidden", others);
        }

        await server.stop();
        server = await startServer(options);
        await server.client.post(`/v1/spaces/${space.id}/objects/${id}/chat/messages`, { text: "after a stop" }, 201);
        await heard("after a stop", others);
        const complaints = opened
          .flatMap((tab) => tab.complaints)
          .filter((text) => !/ERR_(CONNECTION|INCOMPLETE)/.test(text));
        expect(complaints).toEqual([]);
      } catch (error) {
        console.error(recentServerLogs(60));
        throw error;
      } finally {
        await server[Symbol.asyncDispose]();
      }
    },
    120_000,
  );
}

/** Which tab has the leader's lock, as the browser calls it. */
function leaderOf({ page }: WatchedPage): Promise<string | undefined> {
  return page.evaluate(async () => {
    const { held = [] } = await navigator.locks.query();
    return held.find(({ name }) => name?.startsWith("svc leader"))?.clientId;
  });
}

/** What the browser calls a tab. */
function clientIdOf({ page }: WatchedPage): Promise<string | undefined> {
  return page.evaluate(() =>
    navigator.locks.request(`mine ${crypto.randomUUID()}`, async (mine) => {
      const { held = [] } = await navigator.locks.query();
      return held.find(({ name }) => name === mine?.name)?.clientId;
    }),
  );
}

/** A tab without a head is always shown: it is told that it is not. */
async function hide({ page }: WatchedPage, isHidden = true): Promise<void> {
  await page.evaluate(
    (state) => {
      Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    },
    isHidden ? "hidden" : "visible",
  );
}
