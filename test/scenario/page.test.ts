/** `/ui` and `/swagger` in a browser: what a person does there is done, and seen from outside. */
import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { CHROMIUM, useBrowser, type WatchedPage } from "../support/page/browser.ts";
import { type Row, until } from "../support/server/client.ts";
import { type RunningServer, recentServerLogs, startServer } from "../support/server/server.ts";
import { svc, svcFrames } from "../support/server/svc.ts";
import { skipUnless } from "../support/skip.ts";

const browser = useBrowser();
const declare = skipUnless(CHROMIUM !== null, "chromium is not installed");

let server: RunningServer;
let watched: WatchedPage;
let page: Page;
/** Filled in as the person goes along: the tests of this file are one visit, in order. */
const visit = { spaceId: "", documentId: "", chatId: "", phrase: "" };

beforeAll(async () => {
  if (CHROMIUM === null) return;
  server = await startServer({ account: false });
}, 60_000);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
}, 30_000);

/** A step of the visit; nothing may have been fetched from elsewhere or complained of when it ends. */
function step(title: string, run: () => Promise<void>): void {
  declare(
    title,
    async () => {
      if (!watched) {
        watched = await browser.open(server.base);
        page = watched.page;
      }
      try {
        await run();
      } catch (error) {
        const shown = await page.locator("body").ariaSnapshot();
        console.error(`${page.url()}\n${shown.slice(0, 3_000)}\n${recentServerLogs()}`);
        throw error;
      }
      expect(watched.complaints).toEqual([]);
      expect(watched.outside).toEqual([]);
    },
    60_000,
  );
}

/** The command line, at the same server. */
async function cli<T>(...args: string[]): Promise<T> {
  const ran = await svc(args, { addr: server.address });
  expect([args, ran.code, ran.stderr]).toEqual([args, 0, ""]);
  return ran.json() as T;
}

/** The records of a dataset as the command line shows them. */
async function cliRecords(objectId: string, dataset: string, sort: string): Promise<Row[]> {
  const args = ["query-subscribe", visit.spaceId, objectId, "--dataset", dataset, "--sort", sort, "--limit", "100"];
  const frames = await svcFrames(args, { addr: server.address, until: ({ event }) => event === "snapshot" });
  return (frames.at(-1)!.data as unknown as { records: Row[] }).records;
}

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
const section = async (name: string) => {
  await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
};

step(
  "[PAGE-4] an account is made; its phrase is shown once, a reload warns, and two of its words are asked for",
  async () => {
    await page.goto(`${server.base}/ui`);
    await page.getByRole("heading", { name: "Whose workspace is this?" }).waitFor();
    await button("Create account").click();
    await page.getByRole("heading", { name: "Write these words down now" }).waitFor();
    const words = await page.locator(".words code").allInnerTexts();
    expect(words.length).toBe(12);
    visit.phrase = words.join(" ");
    // Leaving now would lose them: the browser asks, and who stays still has them.
    const asked = new Promise<string>((resolve) =>
      page.once("dialog", async (dialog) => {
        resolve(dialog.type());
        await dialog.dismiss();
      }),
    );
    void page.reload().catch(() => {});
    expect(await asked).toBe("beforeunload");
    expect(await page.locator(".words code").allInnerTexts()).toEqual(words);

    await button("I have written them down").click();
    expect(await page.locator(".words").count()).toBe(0);
    const places = (await page.getByText(/^Word \d+$/).allInnerTexts()).map((label) => Number(label.slice(5)));
    expect(places.length).toBe(2);
    for (const place of places) await page.getByLabel(`Word ${place}`, { exact: true }).fill("wrong");
    await button("Continue").click();
    await page.getByText("These are not the words").waitFor();
    for (const place of places) await page.getByLabel(`Word ${place}`, { exact: true }).fill(words[place - 1]!);
    await button("Continue").click();
    await page.getByRole("heading", { name: "Spaces", level: 1 }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Spaces", level: 1 }).waitFor();
    expect(await page.content()).not.toContain(visit.phrase);
    expect(await page.locator(".words").count()).toBe(0);
  },
);

step("[PAGE-4] a space is made and opened", async () => {
  await page.getByLabel("New space").fill("Household");
  await button("Create").click();
  await page.getByRole("heading", { name: "Household", level: 1 }).waitFor();
  visit.spaceId = /#\/spaces\/([^/]+)/.exec(page.url())![1]!;
  expect((await server.client.get<{ name: string }>(`/v1/spaces/${visit.spaceId}`)).name).toBe("Household");
});

const TEXT = "# Groceries\n\n- milk\n- bread\n\nFrom the *market*.\n";

step(
  "[PAGE-4] a document is written, saved and there again after a reload; the command line sees its blocks",
  async () => {
    await page.getByLabel("Name of the new object").fill("Shopping");
    await button("Create").click();
    const writer = page.getByLabel("Markdown", { exact: true });
    await writer.fill(TEXT);
    await button("Save").click();
    await page.getByText("Saved: 4 inserted, 0 unchanged").waitFor();
    visit.documentId = /objects\/([^/?]+)/.exec(page.url())![1]!;
    await page.reload();
    await until(async () => (await writer.inputValue()) === TEXT, "the document after the reload");
    await page.locator(".reader li").getByText("bread").waitFor();
    const blocks = await cliRecords(visit.documentId, "editor_blocks", "nav.pos");
    expect(blocks.map(({ type, text }) => [type, text])).toEqual([
      ["heading", "Groceries"],
      ["list_item", "milk"],
      ["list_item", "bread"],
      ["paragraph", "From the *market*."],
    ]);
  },
);

step("[PAGE-2] [PAGE-3] a save tells what it wrote; a change from elsewhere appears and survives a save", async () => {
  const writer = page.getByLabel("Markdown", { exact: true });
  await writer.fill(TEXT.replace("- bread", "- rye bread"));
  await button("Save").click();
  await page.getByText("Saved: 1 updated, 3 unchanged").waitFor();
  await cli("editor", "edit", visit.spaceId, visit.documentId, "--old", "- milk", "--new", "- oat milk");
  await until(async () => (await writer.inputValue()).includes("- oat milk"), "the other's change");

  const mine = (await writer.inputValue()).replace("*market*", "*corner shop*");
  await writer.fill(mine);
  await cli("editor", "edit", visit.spaceId, visit.documentId, "--old", "Groceries", "--new", "This week");
  await page.getByText("changed elsewhere meanwhile").waitFor();
  expect(await writer.inputValue()).toBe(mine);
  await button("Save").click();
  const both = "# This week\n\n- oat milk\n- rye bread\n\nFrom the *corner shop*.\n";
  await until(async () => (await writer.inputValue()) === both, "both changes");
  const path = `/v1/spaces/${visit.spaceId}/objects/${visit.documentId}/editor/markdown`;
  expect(await server.client.get<object>(path)).toEqual({ content: both });
});

step(
  "[PAGE-2] where both changed the same line, the person says what stays; what others wrote elsewhere does",
  async () => {
    const writer = page.getByLabel("Markdown", { exact: true });
    await writer.fill((await writer.inputValue()).replace("- rye bread", "- white bread"));
    await cli("editor", "edit", visit.spaceId, visit.documentId, "--old", "- rye bread", "--new", "- crispbread");
    await cli("editor", "edit", visit.spaceId, visit.documentId, "--old", "- oat milk", "--new", "- soy milk");
    await page.getByText("changed elsewhere meanwhile").waitFor();
    // The refusal is an answer like any other to the page; the browser logs every 400.
    await button("Save").click();
    await page.getByText("Somebody changed the same lines").waitFor();
    await page.getByText("Not saved; the same lines were changed elsewhere").waitFor();
    const versions = page.getByRole("group", { name: "Place 1" }).locator("pre");
    expect(await versions.allInnerTexts()).toEqual(["- white bread", "- crispbread"]);
    expect(await page.getByRole("group", { name: /^Place/ }).count()).toBe(1);
    expect(await button("Save these choices").isDisabled()).toBe(true);
    await page.getByLabel("Keep theirs").check();
    await button("Save these choices").click();
    const merged = "# This week\n\n- soy milk\n- crispbread\n\nFrom the *corner shop*.\n";
    await until(async () => (await writer.inputValue()) === merged, "their line");
    const path = `/v1/spaces/${visit.spaceId}/objects/${visit.documentId}/editor/markdown`;
    await until(async () => (await server.client.get<{ content: string }>(path)).content === merged, "it to be saved");
    expect(watched.forgive(/400 \(Bad Request\).*\/editor\/markdown$/)).toBe(1);
  },
);

step("[PAGE-4] the document's history tells who changed what", async () => {
  await page.getByRole("link", { name: "History" }).click();
  // What was given up was saved on the way: the newest change takes it back.
  const newest = page.locator(".history > li").first();
  await newest.getByText("1 record").click();
  await newest.locator("del", { hasText: "white bread" }).first().waitFor();
  await newest.locator("ins", { hasText: "crispbread" }).first().waitFor();
});

step(
  "[PAGE-4] messages are sent, answered, edited, reacted to and deleted; the command line sees the same",
  async () => {
    await page.getByRole("link", { name: "Household" }).click();
    await page.getByLabel("New", { exact: true }).selectOption({ label: "Chat" });
    await page.getByLabel("Name of the new object").fill("Kitchen");
    await button("Create").click();
    const field = page.getByLabel("Message", { exact: true });
    await field.fill("Dinner at **seven**?");
    await field.press("Enter");
    const first = page.locator(".chat-message").nth(0);
    await first.locator("strong", { hasText: "seven" }).waitFor();
    visit.chatId = /objects\/([^/?]+)/.exec(page.url())![1]!;

    await first.getByRole("button", { name: "Reply" }).click();
    await field.fill("I bring bread");
    await button("Send").click();
    const second = page.locator(".chat-message").nth(1);
    await second.getByText("You: Dinner at **seven**?").waitFor();

    await first.getByRole("button", { name: "React with 👍" }).click();
    await first.getByRole("button", { name: "👍 1" }).waitFor();
    await second.getByRole("button", { name: "Edit" }).click();
    await field.fill("I bring cake");
    await button("Save").click();
    await second.getByText("I bring cake").waitFor();
    await second.getByText("edited").waitFor();
    await field.fill("Never mind");
    await field.press("Enter");
    const third = page.locator(".chat-message").nth(2);
    await third.getByText("Never mind").waitFor();
    await third.getByRole("button", { name: "Delete" }).click();
    await third.getByRole("button", { name: "Delete for everybody" }).click();
    await third.waitFor({ state: "detached" });

    const records = await cliRecords(visit.chatId, "chat_messages", "_ver.id");
    expect(records.map((record) => record["text"])).toEqual(["Dinner at **seven**?", "I bring cake"]);
    expect(records[1]!["replyToMessageId"]).toBe(records[0]!.id);
    expect(Object.keys(records[0]!["reactions"] as object)).toEqual(["👍"]);
  },
);

step("[PAGE-6] [PAGE-3] a message that the command line sends appears, and is no HTML", async () => {
  await cli(
    "chat",
    "send",
    visit.spaceId,
    visit.chatId,
    "--text",
    "from the <b>shell</b> <img src=x onerror=alert(1)>",
  );
  const message = page.locator(".chat-message").filter({ hasText: "from the" });
  await message.getByText("<img src=x onerror=alert(1)>").waitFor();
  expect(await message.locator("img, b").count()).toBe(0);
});

step("[PAGE-4] a type with a dataset, an object of it and a record are made, and the record deleted", async () => {
  await page.getByRole("link", { name: "Household" }).click();
  await page.getByRole("link", { name: "Datasets" }).click();
  await page.getByLabel("New type with a dataset").fill("Weekly tasks");
  await button("Create").click();
  await page.getByRole("heading", { name: "weekly-tasks" }).waitFor();
  await page.getByRole("link", { name: "Objects" }).click();
  await page.getByLabel("New", { exact: true }).selectOption({ label: "Weekly tasks" });
  await page.getByLabel("Name of the new object").fill("This week");
  await button("Create").click();
  await page.getByText("New record").click();
  await page.getByLabel("Fields (JSON)").fill('{"title": "Water the plants", "minutes": 10}');
  await button("Create record").click();
  const cell = page.getByRole("cell", { name: "Water the plants" });
  await cell.waitFor();
  const row = page.getByRole("row").filter({ has: cell });
  await row.getByRole("button", { name: "Delete" }).click();
  await row.getByRole("button", { name: "Delete for everybody" }).click();
  await page.getByText("Nothing matches.").waitFor();
});

step("[PAGE-4] this device is listed; it is renamed, and becomes the active one of an app", async () => {
  await section("Devices");
  await page.getByLabel("Name of this device").fill("Kitchen table");
  await button("Rename").click();
  await page.getByRole("heading", { name: "Kitchen table" }).waitFor();
  await page.getByLabel("App to install").fill("agent");
  await button("Add app").click();
  await button("Activate here").click();
  await page.getByText("active", { exact: true }).waitFor();
  const { devices, active, self } = await cli<{ devices: Row[]; active: object; self: string }>("devices", "list");
  expect(devices.map((device) => device["name"])).toEqual(["Kitchen table"]);
  expect(active).toEqual({ agent: self });
});

step("[PAGE-3] processes are followed to their end", async () => {
  await section("Processes");
  await page.getByText("Nothing is under way.").waitFor();
  await server.client.post("/v1/processes", { id: "p1", kind: "export", title: "Exporting", scope: "device" });
  await server.client.post("/v1/processes/p1/progress", { done: 3, total: 4 });
  await page.getByText("3 of 4").waitFor();
  await server.client.post("/v1/processes/p1/finish", { status: "done" });
  await page.getByText("done", { exact: true }).waitFor();
});

step("[PAGE-3] events reach the log as they are published, and only those that are asked for", async () => {
  await section("Events");
  await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
  await cli("events", "publish", "--type", "ui.greeting", "--scope", "device", "--data", '{"hello":"page"}');
  await page.getByRole("row").filter({ hasText: "ui.greeting" }).getByText('{"hello":"page"}').waitFor();
  await page.getByLabel("Type", { exact: true }).first().fill("build.*");
  await button("Listen").click();
  await until(() => page.url().includes("type=build"), "the filter in the address");
  await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
  await button("Clear").click();
  // A stream that is only now being opened takes what comes after it.
  await until(async () => {
    const sent = { type: "build.done", scope: "device" };
    return (await server.client.post<{ subscribers: number }>("/v1/events", sent)).subscribers > 0;
  }, "the page to listen for builds");
  await server.client.post("/v1/events", { type: "ui.greeting", scope: "device" });
  await page.getByRole("row").filter({ hasText: "build.done" }).first().waitFor();
  expect(await page.getByRole("row").filter({ hasText: "ui.greeting" }).count()).toBe(0);
});

step(
  "[PAGE-4] somebody is invited, added and given another role; the other asks to join and takes it back",
  async () => {
    await using other = await startServer();
    const { id } = await other.client.get<{ id: string }>("/v1/account");
    await section("Spaces");
    await page.getByRole("link", { name: "Household" }).click();
    await page.getByRole("link", { name: "Members" }).click();
    await button("Make an invite").click();
    const token = await page.locator(".token code").textContent();
    await page.getByLabel("Add somebody as a writer").fill(id);
    await button("Add").click();
    const member = page.locator(".member").filter({ hasText: id });
    await member.getByRole("combobox").selectOption("reader");
    await member.locator(".tag", { hasText: "reader" }).waitFor();
    const { members } = await cli<{ members: Row[] }>("members", "list", visit.spaceId);
    expect(members.map(({ permission }) => permission).toSorted()).toEqual(["owner", "reader"]);

    const theirs = await browser.open(other.base);
    await theirs.page.goto(`${other.base}/ui#/spaces`);
    await theirs.page.getByText("Join a space").click();
    await theirs.page.getByLabel("Invite", { exact: true }).fill(token ?? "");
    await theirs.page.getByRole("button", { name: "Join" }).click();
    await theirs.page.getByText("joining", { exact: true }).waitFor();
    await theirs.page.getByRole("button", { name: "Take the request back" }).click();
    await theirs.page.getByText("joining", { exact: true }).waitFor({ state: "detached" });
    expect([theirs.complaints, theirs.outside]).toEqual([[], []]);
    await theirs.page.close();
  },
);

step("[PAGE-4] a space tells how it is kept in step; a profile and a space's name are changed", async () => {
  await section("Spaces");
  await page.getByRole("link", { name: "Household" }).click();
  await page.getByRole("link", { name: "Sync" }).click();
  await button("Sync now").click();
  await page.getByText(/of \d+ objects/).waitFor();
  await page.getByRole("link", { name: "About" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Our home");
  await button("Save").click();
  await page.getByRole("heading", { name: "Our home", level: 1 }).waitFor();
  await section("Server");
  await page.getByRole("heading", { name: "Local network" }).waitFor();
  await page.getByText("No push node is configured").waitFor();
  await page.getByLabel("Your name, for the people").fill("Ada");
  await button("Save profile").click();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect(await cli<object>("account")).toMatchObject({ metadata: { name: "Ada" } });
});

step("[API-12] the documentation lists every path of the description, loads nothing from elsewhere", async () => {
  await page.goto(`${server.base}/swagger`);
  await page.getByRole("heading", { name: "Meta" }).waitFor();
  const { paths } = await server.client.get<{ paths: Record<string, Record<string, unknown>> }>("/v1/openapi.json");
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  // Of many operations only those in view are there: they are read on the way down.
  const listed = new Set<string>();
  await until(
    async () => {
      const shown = await page.locator(".opblock").evaluateAll((blocks) =>
        blocks.map((block) => {
          const text = (part: string) => block.querySelector(part)?.textContent ?? "";
          return `${text(".opblock-summary-method").toLowerCase()} ${text(".opblock-summary-path")}`;
        }),
      );
      for (const operation of shown) listed.add(operation.replaceAll("\u200b", ""));
      await page.mouse.wheel(0, 600);
      return listed.size >= described.length;
    },
    "every operation to be listed",
    30_000,
  );
  expect([...listed].toSorted()).toEqual(described.toSorted());
  await page.evaluate(() => scrollTo(0, 0));
  await page.locator(".opblock-summary").first().click();
  await page.locator(".opblock.is-open").getByText("Responses").first().waitFor();
  expect((await server.client.request("GET", "/swagger/json")).status).toBe(404);
});
