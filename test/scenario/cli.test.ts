/** The command line against a live server: exit codes, what goes to stdout and what to stderr. */
import { afterAll, describe, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { rule, useServer } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { ZERO_MNEMONIC } from "../support/server/accounts.ts";
import type { JsonObject, SpaceInfo } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { type Collection, createCollection, createSpace, uniqueName } from "../support/server/fixtures.ts";
import { BINARY, childEnv, startServer } from "../support/server/server.ts";
import { type RunOptions, svc } from "../support/server/svc.ts";

let space: SpaceInfo;
let items: Collection;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client, "from the line");
  items = await createCollection(client, space.id);
});
const run = (args: string[], options: RunOptions = {}) => svc(args, { addr: shared.server.address, ...options });

/** A server of our own that answers every request alike: the line's side of the contract can be seen without svc. */
const broken = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch: async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/health") return new Promise<Response>(() => {}); // never answers
    const status = pathname === "/v1/account" ? 500 : 501;
    return Response.json(
      { error: { code: status === 500 ? "internal" : "sdk.not_implemented", message: "no" } },
      { status },
    );
  },
});
afterAll(() => broken.stop(true));
const brokenAddr = `127.0.0.1:${broken.port}`;

describe("exit codes", () => {
  rule("[SRV-7] 0 on success: pretty-printed JSON on stdout, nothing on stderr", async () => {
    const ran = await run(["space", "get", space.id]);
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    expect(ran.json()).toMatchObject({ id: space.id, name: "from the line" });
    expect(ran.stdout).toBe(`${JSON.stringify(ran.json(), null, 2)}\n`);
  });

  rule("[SRV-7] 1 on a 4xx: the code and message on stderr, nothing on stdout", async () => {
    const ran = await run(["space", "get", "bafyunknown"]);
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toContain("space.not_found");
  });

  for (const args of [
    ["space", "get"],
    ["space", "get", "a", "surplus"],
    ["space", "frobnicate"],
    ["nonsense"],
    ["space", "get", "a", "--no-such-flag"],
    ["upsert", "s", "o", "--dataset", "d", "--records", "{not json"],
    ["--timeout", "soon", "status"],
    ["space", "delete", "a"],
  ]) {
    rule(`[SRV-7] 1 on bad arguments: svc ${args.join(" ")}`, async () => {
      const ran = await run(args);
      expect([ran.code, ran.stdout]).toEqual([1, ""]);
      expect(ran.stderr.trim()).not.toBe("");
    });
  }

  rule("[SRV-7] 2 on a 5xx", async () => {
    for (const args of [["account"], ["datasets"]]) {
      const ran = await svc(args, { addr: brokenAddr });
      expect([args, ran.code, ran.stdout]).toEqual([args, 2, ""]);
      expect(ran.stderr).toMatch(/internal|sdk\.not_implemented/);
    }
  });

  rule("[SRV-7] 3 when unreachable: two lines, the address tried and the command that starts a server", async () => {
    const ran = await svc(["account"], { addr: "127.0.0.1:1" });
    expect([ran.code, ran.stdout]).toEqual([3, ""]);
    const lines = ran.stderr.trimEnd().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines.join("\n")).toContain("127.0.0.1:1");
    expect(lines.join("\n")).toContain("svc run");
  });

  rule("[SRV-7] 3 when a call times out, and it says so", async () => {
    const ran = await svc(["status", "--timeout", "300ms"], { addr: brokenAddr });
    expect([ran.code, ran.stdout]).toEqual([3, ""]);
    expect(ran.stderr.toLowerCase()).toMatch(/timed? ?out|timeout/);
  });
});

describe("commands", () => {
  rule("[SRV-8] version needs no server", async () => {
    const ran = await svc(["version"]);
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    expect(ran.stdout).toMatch(/svc v\d+\.\d+\.\d+/);
  });

  rule("[CLI-1] status, auth status, account show what the endpoints answer", async () => {
    const { client } = shared;
    expect((await run(["status"])).json()).toEqual(await client.get("/v1/health"));
    expect((await run(["auth", "status"])).json()).toEqual(await client.get("/v1/auth"));
    expect((await run(["account"])).json()).toEqual(await client.get("/v1/account"));
  });

  rule("[CLI-1] commands whose endpoint answers 204 print nothing", async () => {
    for (const args of [
      ["account", "set-metadata", "--name", "Ada"],
      ["space", "update", space.id, "--description", "changed"],
      ["space", "settings", space.id, "--set", "notifyMode=none", "--set-bool", "wide=true", "--set-num", "size=3"],
      ["space", "sync", space.id],
    ]) {
      const ran = await run(args);
      expect([args, ran.code, ran.stdout, ran.stderr]).toEqual([args, 0, "", ""]);
    }
    const info = await shared.client.get<SpaceInfo>(`/v1/spaces/${space.id}`);
    expect(info.settings).toEqual({ notifyMode: "none", wide: true, size: 3 });
    expect((await shared.client.get<JsonObject>("/v1/account"))["metadata"]).toEqual({ name: "Ada" });
  });

  rule("[CLI-4] space update: an unset flag keeps the value, an empty one clears", async () => {
    const made = await createSpace(shared.client, "kept");
    const seen = async (): Promise<SpaceInfo> => shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`);
    await run(["space", "update", made.id, "--description", "d"]);
    await until(async () => (await seen()).description === "d", "the description");
    expect((await seen()).name).toBe("kept");
    await run(["space", "update", made.id, "--name", ""]);
    await until(async () => (await seen()).name === undefined, "the name to be cleared");
    expect((await run(["space", "update", made.id])).code).toBe(1);
  });

  rule("[CLI-4] space settings --unset removes", async () => {
    const made = await createSpace(shared.client);
    await run(["space", "settings", made.id, "--set", "a=1", "--set", "b=2"]);
    await run(["space", "settings", made.id, "--unset", "a"]);
    expect((await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).settings).toEqual({ b: "2" });
  });

  rule("[CLI-4] space delete needs --yes", async () => {
    const made = await createSpace(shared.client);
    expect((await run(["space", "delete", made.id])).code).toBe(1);
    expect((await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).status).toBe("active");
    const ran = await run(["space", "delete", made.id, "--yes"]);
    expect([ran.code, ran.stdout]).toEqual([0, ""]);
    expect((await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).status).toBe("deleted");
  });

  rule("[CLI-1] space query, derived and datasets", async () => {
    const page = (await run(["space", "query", "--filter", JSON.stringify({ id: space.id })])).json() as JsonObject;
    expect(page["records"]).toMatchObject([{ id: space.id }]);
    expect((await run(["space", "derived"])).json()).toMatchObject({ spaces: [{ name: "agent" }] });
    expect((await run(["datasets"])).json()).toEqual(await shared.client.get("/v1/datasets"));
    expect((await run(["datasets", space.id])).json()).toEqual(await shared.client.get(`${items.path}/datasets`));
  });

  rule("[CLI-1] type create, list, property add and dataset add", async () => {
    const xKey = uniqueName("cli");
    const made = (await run(["type", "create", space.id, "--xkey", xKey, "--name", "Made"])).json() as JsonObject;
    expect(made).toMatchObject({ xKey, name: "Made" });
    expect((await run(["type", "list", space.id])).stdout).toContain(xKey);
    const typeId = made["typeId"] as string;
    const property = (
      await run(["type", "property", "add", space.id, typeId, "--name", "Size", "--kind", "number"])
    ).json();
    expect(property).toMatchObject({ name: "Size", kind: "number" });
    const draft = JSON.stringify({
      name: uniqueName("cli_set"),
      idRule: "user",
      fields: [{ key: "n", kind: "number" }],
    });
    const dataset = (await run(["type", "dataset", "add", space.id, typeId, "--draft", draft])).json() as JsonObject;
    expect(dataset["datasetDefId"]).toBeString();
  });

  rule("[CLI-5] upsert takes its records as JSON, @FILE or - and prints the result", async () => {
    using dir = scratchDir();
    const records = (id: string): string => JSON.stringify([{ id, fields: { n: 1 } }]);
    const file = join(dir.path, "records.json");
    writeFileSync(file, records("from-file"));
    const head = ["upsert", space.id, items.objectId, "--dataset", items.dataset, "--records"];
    for (const [value, options] of [
      [records("inline"), {}],
      [`@${file}`, {}],
      ["-", { stdin: records("from-stdin") }],
    ] as const) {
      expect((await run([...head, value], options)).json()).toMatchObject({ created: 1, updated: 0, skipped: 0 });
    }
    const ids = (await items.query({ filter: { id: { $in: ["inline", "from-file", "from-stdin"] } } })).records;
    expect(ids).toHaveLength(3);
  });

  rule(
    "[CLI-5] upsert takes files larger than a request, as an array and as lines; all refused is exit 1",
    async () => {
      using dir = scratchDir();
      const records = Array.from({ length: 6_000 }, (_, n) => ({
        id: `big-${n}`,
        fields: { n, s: "text ".repeat(50) },
      }));
      const [array, lines] = [join(dir.path, "records.json"), join(dir.path, "records.jsonl")];
      writeFileSync(array, JSON.stringify(records));
      writeFileSync(lines, records.map((record) => JSON.stringify(record)).join("\n"));
      expect(Bun.file(array).size).toBeGreaterThan(1 << 20);
      const head = ["upsert", space.id, items.objectId, "--dataset", items.dataset, "--records"];
      const first = await run([...head, `@${array}`]);
      expect([first.code, first.stderr]).toEqual([0, ""]);
      expect(first.json()).toMatchObject({ created: 6_000, skipped: 0, rejections: [] });
      expect((await run([...head, `@${lines}`])).json()).toMatchObject({ created: 0, skipped: 6_000, pages: [] });
      const refused = await run([...head, JSON.stringify([{ id: "bad id", fields: {} }])]);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain("1 of 1 records were refused");
    },
  );

  rule("[CLI-1] query-subscribe prints one JSON object per frame, and ends with 0 on SIGINT", async () => {
    using home = scratchDir();
    const child = Bun.spawn(
      [
        BINARY,
        "--addr",
        shared.server.address,
        "query-subscribe",
        space.id,
        items.objectId,
        "--dataset",
        items.dataset,
      ],
      { env: childEnv(home.path), stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    );
    let text = "";
    const reading = (async () => {
      for await (const chunk of child.stdout) text += new TextDecoder().decode(chunk);
    })();
    await until(() => text.includes('"snapshot"'), "the snapshot");
    await items.upsert([{ id: "streamed", fields: { n: 7 } }]);
    await until(() => text.includes('"streamed"'), "the change");
    child.kill("SIGINT");
    await child.exited;
    await reading;
    expect(child.exitCode).toBe(0);
    const frames = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string; data: JsonObject });
    expect(frames.map((frame) => frame.event).slice(0, 3)).toEqual(["ready", "snapshot", "changes"]);
    for (const frame of frames) expect(Object.keys(frame).sort()).toEqual(["data", "event"]);
  });

  rule("[CLI-1] a stream whose server shuts down ends with the closed frame and exit 0", async () => {
    await using server = await startServer();
    using home = scratchDir();
    const child = Bun.spawn([BINARY, "--addr", server.address, "space", "subscribe"], {
      env: childEnv(home.path),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    let text = "";
    const reading = (async () => {
      for await (const chunk of child.stdout) text += Buffer.from(chunk).toString();
    })();
    await until(() => text.includes('"ready"'), "the stream to open"); // a shutdown before that is the unreachable case
    await server.stop();
    await reading;
    await child.exited;
    expect(text).toContain("server_shutdown");
    expect(child.exitCode).toBe(0);
  });

  rule("[CLI-1] --verbose logs the HTTP exchange to stderr and leaves stdout alone", async () => {
    const [plain, verbose] = [await run(["account"]), await run(["--verbose", "account"])];
    expect(verbose.stdout).toBe(plain.stdout);
    expect(verbose.stderr).toContain("/v1/account");
  });

  rule("[SRV-4] stop ends the server", async () => {
    await using server = await startServer();
    const ran = await svc(["stop"], { addr: server.address });
    expect([ran.code, ran.stdout]).toEqual([0, ""]);
    expect(await server.exited).toBe(0);
  });

  rule("[CLI-2] help of a command names every call it may make", async () => {
    expect((await svc(["datasets", "--help"])).stdout).toContain(
      "Calls GET /v1/datasets or GET /v1/spaces/<spaceId>/datasets.",
    );
    expect((await svc(["aggregate", "--help"])).stdout).toContain("or POST /v1/spaces/<spaceId>/objects/aggregate.");
  });

  rule("[CLI-1] help goes to stdout with exit 0 and names the subcommands", async () => {
    const help = await svc(["--help"]);
    expect(help.code).toBe(0);
    for (const word of ["init", "run", "space", "upsert", "query-subscribe"]) {
      expect(help.stdout + help.stderr).toContain(word);
    }
  });
});

describe("init", () => {
  const init = (dataDir: string, args: string[] = [], stdin?: string) =>
    svc(["init", ...args], { env: { SVC_DATA_DIR: dataDir }, ...(stdin === undefined ? {} : { stdin }) });

  rule("[ACC-4] creates data dir and wallet, prints the mnemonic to stderr once and JSON to stdout", async () => {
    using dir = scratchDir();
    const root = join(dir.path, "root");
    const ran = await init(root);
    expect(ran.code).toBe(0);
    const made = ran.json() as JsonObject;
    const words = /(?:[a-z]+ ){11}[a-z]+/.exec(ran.stderr);
    expect(words).not.toBeNull();
    expect(ran.stdout).not.toContain(words![0]);
    await using server = await startServer({ dataDir: root, account: false });
    expect(await server.client.get("/v1/health")).toMatchObject({ account: made["accountId"] as string });
  });

  rule("[ACC-4] without flags is a no-op that lists the accounts when one exists", async () => {
    using dir = scratchDir();
    const first = (await init(dir.path)).json() as JsonObject;
    const again = await init(dir.path);
    expect(again.code).toBe(0);
    expect(again.stdout).toContain(first["accountId"] as string);
    expect(again.stderr).not.toMatch(/(?:[a-z]+ ){11}[a-z]+/);
  });

  rule("[ACC-4] --new forces an additional account", async () => {
    using dir = scratchDir();
    const [first, second] = [
      (await init(dir.path)).json() as JsonObject,
      (await init(dir.path, ["--new"])).json() as JsonObject,
    ];
    expect(second["accountId"]).not.toBe(first["accountId"]!);
    await using server = await startServer({
      dataDir: dir.path,
      account: false,
      args: ["--account", second["accountId"] as string],
    });
    expect(await server.client.get("/v1/health")).toMatchObject({ account: second["accountId"] as string });
  });

  rule(
    "[ACC-4] [ACC-1] a phrase by flag and by stdin restores the same account; the peer id is new each time",
    async () => {
      using one = scratchDir();
      using two = scratchDir();
      const byFlag = (await init(one.path, ["--mnemonic", ZERO_MNEMONIC])).json() as JsonObject;
      const byStdin = (await init(two.path, ["--mnemonic-stdin"], `${ZERO_MNEMONIC}\n`)).json() as JsonObject;
      expect(byStdin["accountId"]).toBe(byFlag["accountId"]!);
      expect(byStdin["peerId"]).not.toBe(byFlag["peerId"]!);
    },
  );

  rule("[ACC-4] [ACC-1] --index 0 is another account than the default 1", async () => {
    using one = scratchDir();
    using two = scratchDir();
    const byDefault = (await init(one.path, ["--mnemonic", ZERO_MNEMONIC])).json() as JsonObject;
    const other = (await init(two.path, ["--mnemonic", ZERO_MNEMONIC, "--index", "0"])).json() as JsonObject;
    expect(other["accountId"]).not.toBe(byDefault["accountId"]!);
  });

  rule("[ACC-4] a bad phrase is exit 1 and creates no wallet", async () => {
    using dir = scratchDir();
    const ran = await init(dir.path, ["--mnemonic", "abandon ".repeat(12).trim()]);
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(await Bun.file(join(dir.path, "wallet.key")).exists()).toBe(false);
  });
});

describe("auth login", () => {
  rule("[ACC-3] login generates, restores by a phrase, and is refused where an account is open", async () => {
    await using one = await startServer({ account: false });
    const generated = (await svc(["auth", "login"], { addr: one.address })).json() as JsonObject;
    expect(generated).toMatchObject({ created: true, accountId: expect.any(String) });
    await using two = await startServer({ account: false });
    const restored = await svc(["auth", "login", "--mnemonic-stdin"], {
      addr: two.address,
      stdin: `${ZERO_MNEMONIC}\n`,
    });
    expect(restored.json()).toMatchObject({ created: true });
    const again = await svc(["auth", "login"], { addr: two.address });
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("auth.already_authorized");
  });

  rule("[ACC-3] login opens the one of several accounts that is named, and no other", async () => {
    using dir = scratchDir();
    const ids: string[] = [];
    for (const words of [["init"], ["init", "--new"]])
      ids.push(((await svc(words, { env: { SVC_DATA_DIR: dir.path } })).json() as { accountId: string }).accountId);
    await using server = await startServer({ dataDir: dir.path, account: false });
    const login = (accountId: string) => svc(["auth", "login", "--account", accountId], { addr: server.address });
    expect((await login(`${ids[1]!.slice(0, -2)}aa`)).stderr).toContain("auth.account_not_found");
    const opened = await login(ids[1]!);
    expect([opened.code, opened.json(), opened.stderr]).toEqual([0, { accountId: ids[1]!, created: false }, ""]);
    expect(await server.client.get<JsonObject>("/v1/health")).toMatchObject({ account: ids[1]! });
    expect((await login(ids[0]!)).stderr).toContain("auth.already_authorized");
  });
});
