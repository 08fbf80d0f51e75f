import { afterAll, describe, expect, test } from "bun:test";
import { envelope, fakeServer, runCli } from "../test/support/server/command-line.ts";
import { commandRoot, ROOT_EXAMPLES } from "./command-root.ts";
import type { CommandNode, Leaf } from "./parse/command-spec.ts";
import { nameWords, parseTokens } from "./parse/flag-parser.ts";
import { flagsOf } from "./parse/global-flags.ts";

const server = fakeServer(() => Response.json({ ok: true }));
afterAll(() => server[Symbol.dispose]());

describe("[CLI-2] words that mean nothing are refused with what was probably meant", () => {
  test.each([
    ["spcae", 'unknown command "spcae"; did you mean space?; svc has init'],
    ["devices lst", 'unknown command "lst"; did you mean list?; svc devices has'],
    ["help spaces", 'unknown command "spaces"; did you mean space?'],
    ["space get S --verbos", "unknown flag --verbos; did you mean --verbose?"],
    ["--adr x status", "unknown flag --adr before the command; did you mean --addr?"],
    [
      "search S two words",
      'unexpected argument "words"; the command takes <spaceId> <query>; if the last ones are one text, quote it: "two words"',
    ],
  ])("svc %s", async (line, message) => {
    const ran = await runCli(line.split(" "));
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(server.seen).toEqual([]);
  });
});

describe("--version, -v and help", () => {
  test.each(["--version", "-v"])("[SRV-8] svc %s is svc version", async (flag) => {
    expect(await runCli([flag])).toEqual(await runCli(["version"]));
    expect((await runCli([flag])).stdout).toMatch(/svc v\d+\.\d+\.\d+/);
  });

  test.each([[""], ["space"], ["space get"], ["1-1 pending"]])("svc help %s is its --help", async (line) => {
    const words = line === "" ? [] : line.split(" ");
    expect(await runCli(["help", ...words])).toEqual(await runCli([...words, "--help"]));
    expect(await runCli(["--help", ...words])).toEqual(await runCli([...words, "--help"]));
  });
});

describe("[CLI-2] help shows what applies and nothing else", () => {
  const helpOf = async (line: string) => (await runCli([...line.split(" "), "--help"])).stdout;

  test("commands come in sections", async () => {
    const help = await helpOf("help");
    for (const section of ["THIS MACHINE", "SPACES AND PEOPLE", "DATA"]) expect(help).toContain(`\n${section}\n`);
    expect(help).toContain("EXAMPLES");
  });

  test("global flags only where they do something", async () => {
    expect(await helpOf("space get")).toContain("--timeout");
    expect(await helpOf("space subscribe")).toContain("--addr");
    expect(await helpOf("space subscribe")).not.toContain("--timeout");
    for (const line of ["version", "init"]) {
      expect(await helpOf(line)).not.toContain("--addr");
      expect(await helpOf(line)).not.toContain("--timeout");
    }
    expect(await helpOf("run")).toContain("Loopback address to bind");
    expect(await helpOf("run")).not.toContain("--timeout");
  });
});

/** The leaf to which a line's words lead, and the tokens after them. */
async function leafOf(tokens: string[]): Promise<{ leaf: Leaf; rest: string[] }> {
  let node: CommandNode = commandRoot;
  let index = 0;
  for (; node.subCommands && tokens[index] !== undefined; index++) {
    const entry: CommandNode | (() => Promise<CommandNode>) | undefined = node.subCommands[tokens[index] as string];
    if (!entry) break;
    node = typeof entry === "function" ? await entry() : entry;
  }
  if (!node.leaf) throw new Error(`${tokens.join(" ")} is no command`);
  return { leaf: node.leaf, rest: tokens.slice(index) };
}

async function allLeaves(node: CommandNode, words: string[] = []): Promise<[string, Leaf][]> {
  const below = Object.entries(node.subCommands ?? {}).map(async ([word, entry]) =>
    allLeaves(typeof entry === "function" ? await entry() : entry, [...words, word]),
  );
  return [...(node.leaf ? [[words.join(" "), node.leaf] as [string, Leaf]] : []), ...(await Promise.all(below)).flat()];
}

const leaves = await allLeaves(commandRoot);
const examples = [...ROOT_EXAMPLES, ...leaves.flatMap(([, leaf]) => leaf.examples)];

/** Splits as a shell would: quotes join words, and what `<` redirects is not an argument. */
function shellTokens(line: string): string[] {
  const tokens = [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([token]) =>
    token.replace(/['"](.*)['"]$/, "$1"),
  );
  const redirect = tokens.indexOf("<");
  return redirect < 0 ? tokens : tokens.slice(0, redirect);
}

test.each(examples)("[CLI-2] the example `svc %s` is a command line that svc takes", async (line) => {
  const { leaf, rest } = await leafOf(shellTokens(line));
  const { textsByFlag, words } = parseTokens(rest, flagsOf(leaf));
  nameWords(words, leaf.args);
  for (const [name, texts] of textsByFlag) {
    const literals = leaf.flags[name]?.kind === "json" ? texts.filter((text) => !/^[@-]/.test(text)) : [];
    for (const text of literals) JSON.parse(text);
  }
});

test("[CLI-2] every command that takes JSON in a flag has an example of it", () => {
  const lacking = leaves.filter(([, leaf]) => {
    const takesJson = Object.values(leaf.flags).some(({ kind }) => kind === "json");
    return takesJson && leaf.examples.length === 0;
  });
  expect(lacking.map(([words]) => words)).toEqual([]);
});

describe("[ACC-4] auth login", () => {
  test("that makes an account says so on stderr, and what to do with the phrase", async () => {
    using made = fakeServer(() => Response.json({ accountId: "A1", created: true, mnemonic: "twelve words" }));
    const { exitCode, stdout, stderr } = await runCli(["auth", "login", "--addr", made.addr]);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ accountId: "A1", created: true, mnemonic: "twelve words" });
    expect(stderr).toContain("A new wallet was made on this machine, for the account A1.");
    expect(stderr).toContain("shown only this once. Write it down");
  });

  test("that opens one says nothing", async () => {
    using opened = fakeServer(() => Response.json({ accountId: "A1", created: false }));
    expect((await runCli(["auth", "login", "--addr", opened.addr])).stderr).toBe("");
  });
});

describe("[CLI-5] upsert", () => {
  /** Creates the records with an even number and refuses the others. */
  const answering = (refuse: (id: string) => boolean) =>
    fakeServer(({ body }) => {
      const records = (body as { records: { id: string }[] }).records;
      const rejections = records.flatMap(({ id }, index) =>
        refuse(id) ? [{ index, id, code: "upsert.rejected", reason: "no" }] : [],
      );
      const recordIds = records.map(({ id }) => id).filter((id) => !refuse(id));
      return Response.json({ pages: [{ recordIds }], created: recordIds.length, updated: 0, skipped: 0, rejections });
    });
  const records = Array.from({ length: 3_000 }, (_, n) => ({
    id: `r${n}`,
    fields: { text: `${n} `.padEnd(400, "x") },
  }));
  const upsert = (addr: string, text: string) =>
    runCli(["upsert", "S", "O", "--dataset", "d", "--records", text, "--addr", addr]);

  test.each([
    ["a JSON array", JSON.stringify(records)],
    ["a JSON array over many lines", JSON.stringify(records, null, 2)],
    ["lines", records.map((record) => JSON.stringify(record)).join("\n")],
    ["lines with blank ones and CRLF", `\n${records.map((record) => JSON.stringify(record)).join("\r\n\r\n")}\r\n`],
  ])("sends %s larger than a request in pages, each record once and in order", async (_, text) => {
    using taken = answering(() => false);
    const ran = await upsert(taken.addr, text);
    expect({ exitCode: ran.exitCode, stderr: ran.stderr }).toEqual({ exitCode: 0, stderr: "" });
    const bodies = taken.seen.map(({ body }) => body as { records: unknown[]; objectId: string; dataset: string });
    expect(bodies.length).toBeGreaterThan(3);
    expect(bodies.flatMap((body) => body.records)).toEqual(records);
    for (const body of bodies) {
      expect(JSON.stringify(body).length).toBeLessThan(512 * 1024);
      expect(body).toMatchObject({ objectId: "O", dataset: "d" });
    }
    const answer = JSON.parse(ran.stdout) as { created: number; pages: unknown[] };
    expect([answer.created, answer.pages.length]).toEqual([3_000, bodies.length]);
  });

  test("counts refused records over all pages: some are a line on stderr, all are exit 1", async () => {
    using some = answering((id) => id === "r2999");
    const partly = await upsert(some.addr, JSON.stringify(records));
    expect(partly.exitCode).toBe(0);
    expect(partly.stderr).toBe('svc: 1 of 3000 records were refused; "rejections" says why\n');
    expect(JSON.parse(partly.stdout)).toMatchObject({ created: 2_999, rejections: [{ index: 2_999, id: "r2999" }] });
    using none = answering(() => true);
    const wholly = await upsert(none.addr, JSON.stringify(records));
    expect(wholly.exitCode).toBe(1);
    expect(wholly.stderr).toContain("3000 of 3000 records were refused");
    expect(JSON.parse(wholly.stdout).rejections).toHaveLength(3_000);
  });

  test("that fails on the way says how far it came", async () => {
    let calls = 0;
    using breaking = fakeServer(() =>
      ++calls < 3
        ? Response.json({ pages: [], created: 0, updated: 0, skipped: 0, rejections: [] })
        : envelope(500, "internal", "Something failed"),
    );
    const ran = await upsert(breaking.addr, JSON.stringify(records));
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr).toMatch(/^svc: stopped after \d+ records.*\nsvc: internal \(500\)/);
  });

  test.each([
    ['[{"id":"a"}', "--records ends before its array does"],
    ['[{"id":"a"},]', "--records, record 2, is not valid JSON"],
    ['[{"id":"a"}] x', "--records goes on after its array"],
    ['{"id":"a"}\n{"id":', "--records, record 2, is not valid JSON"],
    ["@/nonexistent", "--records cannot read /nonexistent: ENOENT"],
  ])("refuses %s", async (text, message) => {
    using taken = answering(() => false);
    expect(await upsert(taken.addr, text)).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringContaining(message),
    });
    expect(taken.seen).toEqual([]);
  });

  test("cuts an array only where its own commas stand", async () => {
    using taken = answering(() => false);
    const tricky = [
      { id: 'a,"]', fields: { s: '\\",[{', list: [[1, 2], {}], o: { a: "]" } } },
      { id: "b", fields: {} },
    ];
    await upsert(taken.addr, ` ${JSON.stringify(tricky, null, 1)} `);
    expect(taken.seen.map(({ body }) => (body as { records: unknown }).records)).toEqual([tricky]);
    taken.seen.length = 0;
    await upsert(taken.addr, " [ ] ");
    expect(taken.seen.map(({ body }) => (body as { records: unknown }).records)).toEqual([[]]);
  });
});
