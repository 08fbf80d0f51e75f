/** What people met when they used the page: nothing typed is lost, nothing misleads, nothing is cut off on a phone. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { makeWideSpace, overflowOf, PHONE, usePageVisits } from "../support/page/page-visits.ts";
import { type JsonObject, until } from "../support/server/client.ts";
import { createCollection, createObject, createType, named } from "../support/server/fixtures.ts";

const visits = usePageVisits("Household");
const { contentOf, look, makeDocument, place } = visits;
const writerOf = (page: Page) => page.getByLabel("Markdown", { exact: true });

/** Until the page has shown what follows from all that it has heard of. */
const painted = (page: Page): Promise<void> =>
  page.evaluate(() => new Promise<void>((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

look(
  "[PAGE-2] text that is not saved is there again after going elsewhere, says that it is a draft, and is saved or given up",
  async () => place("spaces", visits.spaceId, "objects", await makeDocument("# Plan\n")),
  async (page) => {
    const writer = writerOf(page);
    await until(async () => (await writer.inputValue()) === "# Plan\n", "the document");
    const id = /objects\/([^/?]+)/.exec(page.url())![1]!;
    await writer.fill("# Plan\n\nnot saved");
    await page.getByRole("link", { name: "History" }).click();
    await page.getByRole("link", { name: "Spaces", exact: true }).first().click();
    await page.getByRole("heading", { name: "Spaces", level: 1 }).waitFor();
    expect(await contentOf(id)).toBe("# Plan\n");
    await page.goto(place("spaces", visits.spaceId, "objects", id));
    await page.getByText("This is your draft of").waitFor();
    expect(await writer.inputValue()).toBe("# Plan\n\nnot saved");
    await page.getByText("Draft, not saved").waitFor();
    // Also over the loading of the page: the browser asks, and who leaves all the same still has it.
    page.once("dialog", (dialog) => void dialog.accept());
    await page.reload();
    await page.getByText("This is your draft of").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText(/^Saved: /).waitFor();
    expect(await contentOf(id)).toBe("# Plan\n\nnot saved");
    expect(await page.getByText("This is your draft of").count()).toBe(0);

    await writer.fill("# Plan\n\ngiven up");
    await page.getByRole("link", { name: "Own row" }).click();
    await page.getByRole("link", { name: "Document" }).click();
    await page.getByRole("button", { name: "Give the draft up" }).click();
    await page.getByRole("button", { name: "Lose it for good" }).click();
    expect(await writer.inputValue()).toBe("# Plan\n\nnot saved");
    await page.reload();
    await until(async () => (await writer.inputValue()) === "# Plan\n\nnot saved", "the document without a draft");
  },
);

look(
  "[PAGE-2] a message that was begun is there again after going elsewhere, and becomes the answer to another",
  async () => {
    const { id } = await createObject(visits.client, visits.spaceId, { types: ["chat"], ...named("Hall") });
    await visits.client.post(`/v1/spaces/${visits.spaceId}/objects/${id}/chat/messages`, { text: "Seven?" }, 201);
    return place("spaces", visits.spaceId, "objects", id);
  },
  async (page) => {
    const field = page.getByLabel("Message", { exact: true });
    await field.fill("I am lat");
    await page.getByRole("link", { name: "History" }).click();
    await page.getByRole("link", { name: "Chat" }).click();
    expect(await field.inputValue()).toBe("I am lat");
    await page.getByRole("button", { name: "Reply" }).click();
    expect(await field.inputValue()).toBe("I am lat");
    await field.fill("I am late");
    await field.press("Enter");
    await page.locator(".chat-message").getByText("I am late").waitFor();
    await page.reload();
    await page.locator(".chat-message").getByText("I am late").waitFor();
    expect(await field.inputValue()).toBe("");
  },
);

for (const size of [undefined, PHONE]) {
  const device = size ? "a phone" : "a desktop";
  look(
    `[PAGE-2] on ${device} a conflict shows both versions and lets each place be decided`,
    async () => place("spaces", visits.spaceId, "objects", await makeDocument("one\n\ntwo\n\nthree\n")),
    async (page, watched) => {
      const writer = writerOf(page);
      await until(async () => (await writer.inputValue()).includes("three"), "the document");
      const id = /objects\/([^/?]+)/.exec(page.url())![1]!;
      await writer.fill("mine 1\n\ntwo\n\nmine 3\n");
      const path = `/v1/spaces/${visits.spaceId}/objects/${id}/editor/markdown`;
      await visits.client.put(path, { content: "theirs 1\n\nTWO\n\ntheirs 3\n" }, 200);
      await page.getByText("changed elsewhere meanwhile").waitFor();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Somebody changed the same lines").waitFor();
      expect(watched.forgive(/400 \(Bad Request\).*\/editor\/markdown$/)).toBe(1);
      const first = page.getByRole("group", { name: "Place 1" });
      const second = page.getByRole("group", { name: "Place 2" });
      expect(await first.locator("pre").allInnerTexts()).toEqual(["mine 1", "theirs 1"]);
      expect(await overflowOf(page)).toEqual([]);
      await first.getByLabel("Keep mine").check();
      await second.getByLabel("Keep both").check();
      await page.getByRole("button", { name: "Save these choices" }).click();
      await until(
        async () => (await contentOf(id)) === "mine 1\n\nTWO\n\ntheirs 3\nmine 3\n",
        "the choices to be saved",
      );
    },
    size,
  );
}

look(
  "[PAGE-5] a double click, and a key that is held, delete nothing",
  async () => place("spaces", visits.spaceId, "objects", await makeDocument("keep me")),
  async (page) => {
    const remove = page.getByRole("button", { name: "Delete", exact: true });
    await remove.dblclick();
    const question = page.getByRole("button", { name: "Delete it for everybody" });
    await question.waitFor();
    await question.focus();
    for (let n = 0; n < 12; n++) {
      await page.keyboard.down("Enter");
      await painted(page);
    }
    await page.keyboard.up("Enter");
    const id = /objects\/([^/?]+)/.exec(page.url())![1]!;
    expect(await contentOf(id)).toBe("keep me");
    await question.click();
    await page.waitForURL((url) => !url.hash.includes("/objects/"));
    await visits.client.fails(
      "GET",
      `/v1/spaces/${visits.spaceId}/objects/${id}/editor/markdown`,
      undefined,
      404,
      "object.not_found",
    );
  },
);

look(
  "[PAGE-4] a type shows what it declares, and a dataset who may change what",
  async () => {
    const { typeId } = await createCollection(visits.client, visits.spaceId, {
      name: "chores",
      fields: [
        { key: "title", kind: "string" },
        { key: "done", kind: "boolean", mutableBy: "any" },
        { key: "due", kind: "datetime", mutableBy: "any" },
      ],
    });
    await visits.client.post(
      `/v1/spaces/${visits.spaceId}/types/${typeId}/properties`,
      { name: "Room", kind: "string" },
      201,
    );
    return place("spaces", visits.spaceId, "objects", typeId);
  },
  async (page) => {
    await page.getByText("This is a type").waitFor();
    await page.getByRole("listitem").filter({ hasText: "Room" }).waitFor();
    const card = page.locator(".card").filter({ has: page.getByRole("heading", { name: "chores" }) });
    await card.getByText("written once, when the record is made").waitFor();
    expect(await card.getByText("written once").count()).toBe(1);
    await card
      .getByRole("listitem")
      .filter({ hasText: /^due datetime$/ })
      .waitFor();
    expect(await page.getByText("declares none").count()).toBe(0);
    expect(await page.getByText("declare none").count()).toBe(0);
  },
);

look(
  "[PAGE-5] who may change a new dataset's field is chosen in words",
  () => place("spaces", visits.spaceId, "datasets"),
  async (page) => {
    for (const [name, choice] of [
      ["Open list", "any"],
      ["Own list", "author"],
      ["Fixed list", "never"],
    ] as const) {
      await page.getByLabel("New type with a dataset").fill(name);
      await page.getByLabel("Its title can be changed by").selectOption(choice);
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("heading", { name: name.toLowerCase().replace(" ", "-") }).waitFor();
    }
    await page.getByText("never changes").waitFor();
    // An object's name and place are changed every day.
    const rows = page.locator(".card").filter({ has: page.getByRole("heading", { name: "objects", exact: true }) });
    await rows
      .getByRole("listitem")
      .filter({ hasText: /^svc object$/ })
      .waitFor();
    await rows
      .getByRole("listitem")
      .filter({ hasText: /^createdAt datetime, derived$/ })
      .waitFor();
    const { datasets } = await visits.client.get<{ datasets: { name: string; schema: JsonObject }[] }>(
      `/v1/spaces/${visits.spaceId}/datasets`,
    );
    const mutableBy = (name: string) => {
      const fields = datasets.find((dataset) => dataset.name === name)!.schema["properties"] as JsonObject;
      return (fields["title"] as JsonObject)["x-mutable-by"];
    };
    expect(["open-list", "own-list", "fixed-list"].map(mutableBy)).toEqual(["any", "author", undefined]);
  },
);

look(
  "[PAGE-5] an unknown tab says that there is nothing, and where to go",
  () => place("spaces", visits.spaceId, "nonsense"),
  async (page) => {
    await page.getByRole("heading", { name: "There is nothing here" }).waitFor();
    await page.getByRole("link", { name: "To the objects of the space" }).click();
    await page.getByLabel("Name of the new object").waitFor();
  },
);

look(
  "[PAGE-5] a new invite replaces the old one only for who was told so",
  () => place("spaces", visits.spaceId, "members"),
  async (page) => {
    const token = page.locator(".token code");
    await page.getByRole("button", { name: "Make an invite" }).click();
    const first = await token.textContent();
    await page.getByRole("button", { name: "Make a new invite" }).click();
    await page.getByRole("button", { name: /Replace the invite below: it stops working/ }).waitFor();
    expect(await token.textContent()).toBe(first);
    await page.getByRole("button", { name: /Replace the invite below/ }).click();
    await until(async () => (await token.textContent()) !== first, "the new invite");
  },
);

look(
  "[PAGE-5] how a space is kept in step is said in plain words",
  () => place("spaces", visits.spaceId, "sync"),
  async (page) => {
    await page.getByText("Kept elsewhere too").waitFor();
    await page.getByText("Nothing has been exchanged with anybody").waitFor();
    const words = await page.locator("main").textContent();
    expect(words).not.toMatch(/notconnected|notpossible|unconfirmed|parked|quarantine|[Rr]ound|peer/);
    await page.goto(place("server"));
    await page.getByRole("heading", { name: "Local network" }).waitFor();
    expect(await page.locator("main").textContent()).not.toMatch(/notconnected|notpossible/);
  },
);

look(
  "[PAGE-5] a space that others ended says who did it and when, and a request to join has a name",
  () => place("spaces"),
  async (page) => {
    const ended = { how: "removed", by: "ABLJen9TXuZVjSx3qoexsAq2Hft9vShvQwpCCc6TZz7HDJi8", name: "Olga" };
    const row = {
      id: "bafyended",
      spaceType: "svc.space",
      createdAt: { $date: "2026-01-02T03:04:05.000Z" },
      ownRole: "none",
    };
    // What the rows of two devices say is shown by the tests of sharing; here they are given.
    await page.route(/\/v1\/spaces\?status=all/, async (route) => {
      const all = (await (await route.fetch()).json()) as object[];
      const over = {
        ...row,
        name: "Garden",
        status: "deleted",
        ended: { ...ended, at: { $date: "2026-05-06T07:08:09.000Z" } },
      };
      await route.fulfill({ json: [...all, over, { ...row, id: "bafyjoining", status: "joining" }] });
    });
    await page.reload();
    await page.getByText(/Olga removed you from the space on .*2026/).waitFor();
    await page.getByRole("heading", { name: "A space you asked to join" }).waitFor();
    await page.goto(place("spaces", "bafyended", "objects"));
    await page.getByRole("heading", { name: "Garden" }).waitFor();
    await page.getByText(/Olga removed you from the space on .*2026.*a new invite would bring it back/).waitFor();
    expect(await page.getByText("The space is deleted").count()).toBe(0);
  },
);

look(
  "[PAGE-4] who asks to join is shown by the name it gave",
  () => place("spaces", visits.spaceId, "members"),
  async (page) => {
    const members = async (list: JsonObject[]) => {
      await page.route(/\/members$/, (route) => route.fulfill({ json: { members: list } }));
      await page.reload();
    };
    const asker = { permission: "none", status: "joining", requestRecordId: "r" };
    await members([
      { ...asker, identity: "A1111111111111", name: "Gustav" },
      { ...asker, identity: "A2222222222222" },
    ]);
    await page.locator(".member").filter({ hasText: "Gustav" }).getByText("asks to join").waitFor();
    await page.getByText("Somebody without a name").waitFor();
  },
);

look(
  "[PAGE-5] what the server's health warns of stands above everything",
  () => place("spaces"),
  async (page) => {
    const message = "This data root was copied. Run svc init --new-device on one of the two.";
    await page.route(/\/v1\/health$/, async (route) => {
      const health = (await (await route.fetch()).json()) as object;
      await route.fulfill({ json: { ...health, warnings: [{ code: "device.copied", message }] } });
    });
    await page.reload();
    await page.getByRole("alert").getByText(message).waitFor();
  },
);

look(
  "[PAGE-4] words are searched for in a space; what was found leads to its object",
  async () => {
    await makeDocument("# Shopping\n\nThe quince jam is gone.\n");
    return place("spaces", visits.spaceId);
  },
  async (page) => {
    const search = async (words: string) => {
      await page.getByLabel("Search this space").fill(words);
      await page.getByRole("search").getByRole("button", { name: "Search" }).click();
    };
    await until(async () => {
      const body = { query: "quince" };
      return (
        (await visits.client.post<{ hits: unknown[] }>(`/v1/spaces/${visits.spaceId}/search`, body)).hits.length > 0
      );
    }, "the document to be indexed");
    await search("quince");
    const found = page.getByRole("list", { name: "Found" }).getByRole("listitem");
    await found.locator("mark", { hasText: "quince" }).waitFor();
    await found.getByRole("link", { name: "Notes" }).click();
    await page.locator(".reader").getByText("The quince jam is gone.").waitFor();
    await page.goto(place("spaces", visits.spaceId));
    await search("nowhere-to-be-found");
    await page.getByText("Nothing was found.").waitFor();
  },
);

look(
  "[PAGE-4] files are attached to an object, listed, downloaded and deleted",
  async () => place("spaces", visits.spaceId, "objects", await makeDocument("with a file"), "files"),
  async (page) => {
    await page.getByText("No files yet.").waitFor();
    const bytes = Buffer.from("x".repeat(5_000));
    await page.getByLabel("Attach files").setInputFiles({ name: "a b.txt", mimeType: "text/plain", buffer: bytes });
    const row = page.getByRole("listitem").filter({ hasText: "a b.txt" });
    await row.getByText("5.0 kB · text/plain").waitFor();
    const downloading = page.waitForEvent("download");
    await row.getByRole("link", { name: "a b.txt" }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe("a b.txt");
    expect(await Bun.file(await download.path()).text()).toBe(bytes.toString());
    await row.getByRole("button", { name: "Delete" }).click();
    await row.getByRole("button", { name: "Delete it for everybody" }).click();
    await page.getByText("No files yet.").waitFor();
  },
);

look(
  "[PAGE-7] on a phone no page is wider than the screen",
  () => place("spaces"),
  async (page) => {
    const document = await makeDocument(
      `# Long\n\n${"x".repeat(300)}\n\n| a | b |\n|---|---|\n| ${"y".repeat(80)} | z |\n`,
    );
    const chat = await createObject(visits.client, visits.spaceId, { types: ["chat"], ...named("Kitchen") });
    await visits.client.post(
      `/v1/spaces/${visits.spaceId}/objects/${chat.id}/chat/messages`,
      { text: "w".repeat(200) },
      201,
    );
    const items = await createCollection(visits.client, visits.spaceId);
    await items.upsert([{ id: "r1", fields: { s: "v".repeat(200), o: { deep: "u".repeat(200) } } }]);
    const { typeId } = await createType(visits.client, visits.spaceId, "a_type_with_quite_a_long_key_that_has_no_room");
    const wide = await makeWideSpace(visits.client);
    const object = (id: string, ...view: string[]) => ["spaces", visits.spaceId, "objects", id, ...view];
    const places = [
      ["spaces"],
      ["devices"],
      ["processes"],
      ["events"],
      ["server"],
      ["spaces", visits.spaceId, "search"],
      ...["objects", "datasets", "members", "sync", "about", "nonsense"].map((tab) => ["spaces", visits.spaceId, tab]),
      ...["document", "records", "files", "history", "row"].map((view) => object(document, view)),
      object(chat.id),
      object(items.objectId, "records"),
      object(typeId),
      ["spaces", wide.spaceId, "objects"],
      ["spaces", wide.spaceId, "objects", wide.typeId],
      ...["document", "files", "history"].map((view) => ["spaces", wide.spaceId, "objects", wide.objectId, view]),
    ];
    for (const segments of places) {
      await page.goto(place(...segments));
      await page.getByText("Loading…").waitFor({ state: "detached" });
      for (const summary of await page.locator("summary").all()) await summary.click();
      await page.getByText("Loading…").waitFor({ state: "detached" });
      await painted(page);
      expect([segments.join("/"), await overflowOf(page)]).toEqual([segments.join("/"), []]);
    }
  },
  PHONE,
);
