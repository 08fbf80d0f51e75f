/** Visits of the page in a browser: a server with a space for a file's tests, and a tab for each of them. */
import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import type { Client, SpaceInfo } from "../server/client.ts";
import { createObject, createSpace, createType, named } from "../server/fixtures.ts";
import { type RunningServer, recentServerLogs, startServer } from "../server/server.ts";
import { skipUnless } from "../skip.ts";
import { CHROMIUM, useBrowser, type WatchedPage } from "./browser.ts";

export const PHONE = { width: 390, height: 844 };

export function usePageVisits(spaceName: string) {
  const browser = useBrowser();
  const declare = skipUnless(CHROMIUM !== null, "chromium is not installed");
  let server: RunningServer;
  let space: SpaceInfo;
  beforeAll(async () => {
    if (CHROMIUM === null) return;
    server = await startServer();
    space = await createSpace(server.client, spaceName);
  }, 60_000);
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  }, 30_000);
  const markdownOf = (id: string): string => `/v1/spaces/${space.id}/objects/${id}/editor/markdown`;
  return {
    get client(): Client {
      return server.client;
    },
    get spaceId(): string {
      return space.id;
    },
    /** The address of a place within the page. */
    place: (...segments: string[]): string => `${server.base}/ui#/${segments.map(encodeURIComponent).join("/")}`,
    async makeDocument(content: string): Promise<string> {
      const { id } = await createObject(server.client, space.id, { types: ["page"], ...named("Notes") });
      await server.client.put(markdownOf(id), { content }, 200);
      return id;
    },
    contentOf: async (id: string): Promise<string> =>
      (await server.client.get<{ content: string }>(markdownOf(id))).content,
    /** A test with a page of its own; `where` is opened first. */
    look(
      title: string,
      where: () => Promise<string> | string,
      run: (page: Page, watched: WatchedPage) => Promise<void>,
      size?: { width: number; height: number },
    ): void {
      declare(
        title,
        async () => {
          const watched = await browser.open(server.base, size ? { size } : {});
          const { page } = watched;
          try {
            await page.goto(await where());
            await run(page, watched);
          } catch (error) {
            const shown = await page.locator("body").ariaSnapshot();
            console.error(`${page.url()}\n${shown.slice(0, 3_000)}\n${recentServerLogs()}`);
            throw error;
          } finally {
            await page.close();
          }
          expect([watched.complaints, watched.outside]).toEqual([[], []]);
        },
        60_000,
      );
    },
  };
}

/** A space in which every name that somebody chooses is as long as it may look bad: its own, a type's, an object's, a file's. */
export async function makeWideSpace(client: Client): Promise<{ spaceId: string; typeId: string; objectId: string }> {
  const { id: spaceId } = await createSpace(client, "n".repeat(100));
  const object = await createObject(client, spaceId, { types: ["page"], ...named("t".repeat(100)) });
  const { typeId } = await createType(client, spaceId, "k".repeat(100));
  const type = `/v1/spaces/${spaceId}/types/${typeId}`;
  await client.post(`${type}/properties`, { name: "p".repeat(100), kind: "string" }, 201);
  const fields = [{ key: "d".repeat(60), name: "l".repeat(100), description: "e".repeat(100) }];
  await client.post(`${type}/datasets`, { name: "s".repeat(60), displayName: "m".repeat(100), fields }, 201);
  const path = `/v1/spaces/${spaceId}/objects/${object.id}/files?name=${"f".repeat(100)}.txt`;
  await client.request("POST", path, { raw: "a file", headers: { "content-type": "text/plain" } });
  return { spaceId, typeId, objectId: object.id };
}

/** What stands out of the screen to the right, unless something around it scrolls: boxes, and text that leaves its box. */
export function overflowOf(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const reach = document.createRange();
    const out = [...document.querySelectorAll("body *")].filter((element) => {
      reach.selectNodeContents(element);
      return Math.max(element.getBoundingClientRect().right, reach.getBoundingClientRect().right) > innerWidth + 1;
    });
    return [
      `${document.documentElement.scrollWidth} pixels`,
      ...out.map(
        (element) => `${element.tagName.toLowerCase()}.${element.className} ${element.textContent?.slice(0, 40)}`,
      ),
    ];
  });
}
