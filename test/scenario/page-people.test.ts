/** Two people with an account, a server and a browser each, who meet over a network: what their pages tell them. */
import { expect } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describeWithNats, startNats } from "../support/network/nats.ts";
import { CHROMIUM, useBrowser } from "../support/page/browser.ts";
import { scratchDir } from "../support/scratch.ts";
import { type Device, startDevice } from "../support/server/devices.ts";
import { createObject, createSpace, named } from "../support/server/fixtures.ts";
import { svc } from "../support/server/svc.ts";
import { skipUnless } from "../support/skip.ts";

const browser = useBrowser();
const declare = skipUnless(CHROMIUM !== null, "chromium is not installed");
const LONG_MS = 120_000;
const WAIT_MS = 40_000;
const PHONE = { width: 390, height: 844 };
/** As the page writes a day of this year. */
const ON_A_DAY = new RegExp(`on .*${new Date().getFullYear()}`);

async function startPerson(name: string, network: string): Promise<Device> {
  const person = await startDevice({ network });
  await person.server.client.put("/v1/account/metadata", { name });
  return person;
}

const shown = (page: Page, text: RegExp | string) => page.getByText(text).first().waitFor({ timeout: WAIT_MS });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const widthOf = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth);

async function joinBy(page: Page, base: string, token: string): Promise<void> {
  await page.goto(`${base}/ui#/spaces`);
  await page.getByText("Join a space").click();
  await page.getByLabel("Invite", { exact: true }).fill(token);
  await button(page, "Join").click();
}

describeWithNats("two people", () => {
  declare(
    "[PAGE-4] one asks to join and is shown by name, is let in, is removed and reads who did it and when, is back, and reads who deleted it",
    async () => {
      await using nats = await startNats();
      await using ada = await startPerson("Ada", nats.url);
      await using gustav = await startPerson("Gustav", nats.url);
      const space = await createSpace(ada.server.client, "Garden");
      const talk = await createObject(ada.server.client, space.id, { types: ["chat"], ...named("Talk") });
      const hers = await browser.open(ada.server.base);
      const his = await browser.open(gustav.server.base, { size: PHONE });

      await hers.page.goto(`${ada.server.base}/ui#/spaces/${space.id}/members`);
      await button(hers.page, "Make an invite").click();
      const token = (await hers.page.locator(".token code").textContent()) ?? "";
      await joinBy(his.page, gustav.server.base, token);
      await shown(his.page, "A space you asked to join");
      expect(await widthOf(his.page)).toBe(PHONE.width);
      const member = hers.page.locator(".member").filter({ hasText: "Gustav" });
      await member.getByText("asks to join").waitFor({ timeout: WAIT_MS });
      await button(hers.page, "Accept").click();

      await his.page.getByRole("link", { name: "Garden" }).click({ timeout: WAIT_MS });
      await his.page.getByRole("link", { name: "Talk" }).click({ timeout: WAIT_MS });
      await his.page.getByLabel("Message", { exact: true }).fill("The roses are out");
      await button(his.page, "Send").click();
      expect(await widthOf(his.page)).toBe(PHONE.width);
      await hers.page.goto(`${ada.server.base}/ui#/spaces/${space.id}/objects/${talk.id}`);
      await shown(hers.page, "The roses are out");

      await hers.page.goto(`${ada.server.base}/ui#/spaces/${space.id}/members`);
      await member.getByRole("button", { name: "Remove", exact: true }).click();
      await button(hers.page, "Remove from the space").click();
      await shown(his.page, /Ada removed you from the space/);
      await shown(his.page, ON_A_DAY);
      expect(await widthOf(his.page)).toBe(PHONE.width);
      await his.page.goto(`${gustav.server.base}/ui#/spaces`);
      await shown(his.page, /Ada removed you from the space/);
      expect(await his.page.getByText("The space is deleted").count()).toBe(0);

      await joinBy(his.page, gustav.server.base, token);
      await member.getByText("asks to join").waitFor({ timeout: WAIT_MS });
      await button(hers.page, "Accept").click();
      await his.page.getByRole("link", { name: "Garden" }).click({ timeout: WAIT_MS });
      await ada.server.client.del(`/v1/spaces/${space.id}`);
      await shown(his.page, /Ada deleted the space for everybody/);
      await shown(his.page, ON_A_DAY);
      his.forgive(new RegExp(`409 .*/v1/spaces/${space.id}`)); // what the page was reading when it was deleted
      expect([hers.complaints, his.complaints]).toEqual([[], []]);
      await hers.page.close();
      await his.page.close();
    },
    LONG_MS,
  );

  declare(
    "[SYNC-8] the pages of a data root and of its copy both say it, with the remedy, which ends it",
    async () => {
      await using nats = await startNats();
      using root = scratchDir("svc-root");
      using copyRoot = scratchDir("svc-copy");
      await using original = await startDevice({ network: nats.url, dataDir: root.path });
      await createSpace(original.server.client, "Copied");
      await original.server.client.untilBootstrapped();
      const first = await browser.open(original.server.base);
      await first.page.goto(`${original.server.base}/ui#/spaces`);
      await shown(first.page, "Copied");
      cpSync(root.path, copyRoot.path, { recursive: true });
      // On the machine that it is copied to, the process that had the original open does not run.
      for (const name of ["server.lock", `${original.accountId}/server.pid`]) {
        rmSync(join(copyRoot.path, name), { force: true });
      }
      {
        await using copy = await startDevice({ network: nats.url, dataDir: copyRoot.path });
        const second = await browser.open(copy.server.base, { size: PHONE });
        await second.page.goto(`${copy.server.base}/ui#/spaces`);
        for (const { page } of [first, second]) {
          const warning = page.getByRole("alert").filter({ hasText: "svc init --new-device" });
          await warning.waitFor({ timeout: WAIT_MS });
        }
        expect(await widthOf(second.page)).toBe(PHONE.width);
        await second.page.close();
      }
      const renewed = await svc(["init", "--new-device", "--data-dir", copyRoot.path]);
      expect(renewed.code).toBe(0);
      await using device = await startDevice({ network: nats.url, dataDir: copyRoot.path });
      const third = await browser.open(device.server.base);
      await third.page.goto(`${device.server.base}/ui#/spaces`);
      await shown(third.page, "Copied");
      expect(await third.page.getByRole("alert").count()).toBe(0);
      await first.page.close();
      await third.page.close();
    },
    LONG_MS,
  );
});
