/** Every command is one HTTP call. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandLeaves, fakeServer, runCli, streamOf } from "../test/support/server/command-line.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));
const messagePath = join(folder, "message.json");
writeFileSync(messagePath, JSON.stringify({ text: "from file", attachments: { a: { type: "link", link: "x" } } }));
const notePath = join(folder, "note.txt");
writeFileSync(notePath, "hello");

/** A command line, quoted as for a shell, and the one request that it must make: method and target, then the body. */
type Row = [line: string, request: string, body?: unknown];

const ROWS: Row[] = [
  // Meta and auth
  ["auth login", "POST /v1/auth", {}],
  ["auth login --mnemonic 'one two' --index 0", "POST /v1/auth", { mnemonic: "one two", index: 0 }],
  ["auth login --account A1", "POST /v1/auth", { accountId: "A1" }],
  ["auth status", "GET /v1/auth"],
  ["status", "GET /v1/health"],
  ["stop", "POST /v1/shutdown"],
  ["trigger list", "GET /triggers"],
  ["trigger get t1", "GET /triggers/t1"],
  ["trigger runs t1", "GET /triggers/t1/runs"],
  [`trigger run t1 --dry --args '{"a":1}'`, "POST /triggers/t1/run", { dry: true, args: { a: 1 } }],
  ["trigger next t1 --n 3", "GET /triggers/t1/next?n=3"],
  ["trigger enable t1", "POST /triggers/t1/enable"],
  ["trigger disable t1", "POST /triggers/t1/disable"],
  ["trigger set t1 --spec '0 9 * * 1-5'", "PATCH /triggers/t1", { spec: "0 9 * * 1-5" }],
  [`trigger set t1 --spec '{"at": 5}' --enabled false`, "PATCH /triggers/t1", { spec: { at: 5 }, enabled: false }],
  ["trigger logs run_1", "GET /runs/run_1"],
  ["trigger cancel run_1", "POST /runs/run_1/cancel"],
  ["trigger replay run_1", "POST /runs/run_1/replay"],
  ["program list", "GET /programs"],
  ["program get p 1", "GET /programs/p/1"],
  ["program put p 1 --code main", "PUT /programs/p/1", { code: "main" }],
  ["network init", "POST /v1/network/init", {}],
  ["network init --replicas 3", "POST /v1/network/init", { replicas: 3 }],
  // Account, identities, devices
  ["account", "GET /v1/account"],
  [
    "account set-metadata --name N --description= --icon C",
    "PUT /v1/account/metadata",
    { name: "N", description: "", iconCid: "C" },
  ],
  ["account set-metadata --icon-cid C", "PUT /v1/account/metadata", { iconCid: "C" }],
  ["identities list", "GET /v1/identities"],
  ["contacts list", "GET /v1/identities"],
  ["identities get A/1", "GET /v1/identities/A%2F1"],
  ["identities subscribe", "GET /v1/identities/subscribe"],
  ["devices list", "GET /v1/devices"],
  [
    "devices register --name N --app agent=1.2=x --app bare --remove-app gone",
    "PUT /v1/devices/me",
    { name: "N", apps: { agent: { version: "1.2=x" }, bare: {}, gone: null } },
  ],
  ["devices activate agent", "POST /v1/devices/activate", { app: "agent" }],
  ["devices remove P1 --yes", "DELETE /v1/devices/P1"],
  [
    `devices query --filter '{"os":"linux"}' --sort -name,id --limit 2 --offset 1 --total`,
    "POST /v1/devices/query",
    { filter: { os: "linux" }, sort: ["-name", "id"], limit: 2, offset: 1, includeTotal: true },
  ],
  [
    "devices subscribe --sort name --limit 5 --mailbox-capacity 32 --drift-budget 10",
    "POST /v1/devices/query/subscribe",
    { sort: ["name"], limit: 5, mailboxCapacity: 32, driftBudgetPercent: 10 },
  ],
  // Spaces
  ["space get a/b%c", "GET /v1/spaces/a%2Fb%25c"],
  ["space update S --name=", "PATCH /v1/spaces/S", { name: "" }],
  [
    "space update S --name 'New name' --description D --icon C",
    "PATCH /v1/spaces/S",
    { name: "New name", description: "D", iconCid: "C" },
  ],
  [
    "space settings S --set notifyMode=all --set eq=a=b --set-bool on=true --set-num n=-1.5 --unset gone --unset old",
    "PATCH /v1/spaces/S/settings",
    { set: { notifyMode: "all", eq: "a=b", on: true, n: -1.5 }, unset: ["gone", "old"] },
  ],
  ["space settings S --unset gone", "PATCH /v1/spaces/S/settings", { unset: ["gone"] }],
  ["space delete S --yes", "DELETE /v1/spaces/S"],
  ["space sync S", "POST /v1/spaces/S/sync"],
  ["space derived", "GET /v1/spaces/derived"],
  ["space derived create agent", "POST /v1/spaces/derived/agent"],
  ["space query --dataset profile", "POST /v1/spaces/query", { dataset: "profile" }],
  ["space query", "POST /v1/spaces/query", {}],
  ["space subscribe --limit 1", "POST /v1/spaces/query/subscribe", { limit: 1 }],
  ["datasets", "GET /v1/datasets"],
  ["datasets S", "GET /v1/spaces/S/datasets"],
  [
    `search S '"two words" x' --scopes basic,chat --limit 3 --mode fts --require 'a b' --require c --exclude d --max-data -1`,
    "POST /v1/spaces/S/search",
    {
      query: '"two words" x',
      scopes: ["basic", "chat"],
      limit: 3,
      mode: "fts",
      require: ["a b", "c"],
      exclude: ["d"],
      maxData: -1,
    },
  ],
  // One-to-one
  ["one-to-one start A1", "POST /v1/spaces/one-to-one", { otherIdentity: "A1" }],
  ["one-to-one accept S", "POST /v1/spaces/S/one-to-one/accept"],
  ["one-to-one decline S", "POST /v1/spaces/S/one-to-one/decline"],
  ["one-to-one register A1", "POST /v1/spaces/one-to-one/register-incoming", { peerIdentity: "A1" }],
  [
    "one-to-one register A1 --name N --description D --icon-cid C",
    "POST /v1/spaces/one-to-one/register-incoming",
    { peerIdentity: "A1", displayHint: { name: "N", description: "D", iconCid: "C" } },
  ],
  ["one-to-one pending", "GET /v1/spaces?status=one_to_one_pending"],
  ["1-1 pending", "GET /v1/spaces?status=one_to_one_pending"],
  ["direct pending", "GET /v1/spaces?status=one_to_one_pending"],
  // Data
  ["query-subscribe S O --dataset notes", "POST /v1/spaces/S/query/subscribe", { objectId: "O", dataset: "notes" }],
  [
    `query-subscribe S --properties --filter '{"a":{"$gt":1}}' --sort -_ver.id --limit 9 --offset 2 --total`,
    "POST /v1/spaces/S/objects/query/subscribe",
    { filter: { a: { $gt: 1 } }, sort: ["-_ver.id"], limit: 9, offset: 2, includeTotal: true },
  ],
  [
    `aggregate S O --dataset notes --pipeline '[{"$count":"n"}]' --group-limit -1 --accum-limit 2 --memory-limit 3 --explain`,
    "POST /v1/spaces/S/aggregate",
    {
      objectId: "O",
      dataset: "notes",
      pipeline: [{ $count: "n" }],
      groupLimit: -1,
      accumArrayLimit: 2,
      memoryLimitBytes: 3,
      explain: true,
    },
  ],
  ["aggregate S --properties --pipeline []", "POST /v1/spaces/S/objects/aggregate", { pipeline: [] }],
  [
    `upsert S O --dataset notes --records '[{"id":"1","fields":{}}]' --page-size 10 --trace-id t1 --trace-id t2`,
    "POST /v1/spaces/S/upsert",
    { objectId: "O", dataset: "notes", records: [{ id: "1", fields: {} }], pageSize: 10, traceIds: ["t1", "t2"] },
  ],
  // Editor
  [
    `editor blocks create S O --type heading --text Hi --style '{"level":2}' --parent B0 --pos a1`,
    "POST /v1/spaces/S/objects/O/editor/blocks",
    { type: "heading", text: "Hi", style: { level: 2 }, nav: { parentId: "B0", pos: "a1" } },
  ],
  [
    `editor blocks patch S O B --set '{"style.level":3}' --unset text --unset style.lang`,
    "PATCH /v1/spaces/S/objects/O/editor/blocks/B",
    { set: { "style.level": 3 }, unset: ["text", "style.lang"] },
  ],
  ["editor blocks delete S O B", "DELETE /v1/spaces/S/objects/O/editor/blocks/B"],
  [
    "editor edit S O --old a --new b",
    "PATCH /v1/spaces/S/objects/O/editor/markdown",
    { edits: [{ oldText: "a", newText: "b" }] },
  ],
  [
    "editor edit S O --old a --new= --all",
    "PATCH /v1/spaces/S/objects/O/editor/markdown",
    { edits: [{ oldText: "a", newText: "", replaceAll: true }] },
  ],
  [
    `editor edit S O --edits '[{"oldText":"x","newText":"y"}]'`,
    "PATCH /v1/spaces/S/objects/O/editor/markdown",
    { edits: [{ oldText: "x", newText: "y" }] },
  ],
  // Chat
  ["chat send S O --text 'Hi there'", "POST /v1/spaces/S/objects/O/chat/messages", { text: "Hi there" }],
  [
    "chat send S O --text --old --reply-to M0 --agent-name Bot --agent-debug-link http://x --agent-done",
    "POST /v1/spaces/S/objects/O/chat/messages",
    { text: "--old", replyToMessageId: "M0", agent: { name: "Bot", debugLink: "http://x", done: true } },
  ],
  [
    `chat send S O --file ${messagePath} --reply-to M0 --agent-name Bot`,
    "POST /v1/spaces/S/objects/O/chat/messages",
    {
      text: "from file",
      attachments: { a: { type: "link", link: "x" } },
      replyToMessageId: "M0",
      agent: { name: "Bot", done: false },
    },
  ],
  ["chat edit S O M --text new", "PATCH /v1/spaces/S/objects/O/chat/messages/M", { text: "new" }],
  ["chat delete S O M", "DELETE /v1/spaces/S/objects/O/chat/messages/M"],
  ["chat react S O M 👍", "POST /v1/spaces/S/objects/O/chat/messages/M/reactions/%F0%9F%91%8D"],
  // Types
  [
    "type create S --xkey k --name N --description D --icon C",
    "POST /v1/spaces/S/types",
    { xKey: "k", name: "N", description: "D", iconCid: "C" },
  ],
  ["type list S", "GET /v1/spaces/S/types"],
  ["type property list S T", "GET /v1/spaces/S/types/T/properties"],
  [
    `type property add S T --name N --xkey k --kind string --format-type select --format-ui link --scope local --meta '{"index":"none"}'`,
    "POST /v1/spaces/S/types/T/properties",
    {
      name: "N",
      xKey: "k",
      kind: "string",
      format: { type: "select", ui: "link" },
      scope: "local",
      meta: { index: "none" },
    },
  ],
  [
    `type property patch S T P --set '{"name":"X"}' --unset meta.a`,
    "PATCH /v1/spaces/S/types/T/properties/P",
    { set: { name: "X" }, unset: ["meta.a"] },
  ],
  ["type property remove S T P", "DELETE /v1/spaces/S/types/T/properties/P"],
  [
    "type property option set S T P done --name Done --color green --pos a1",
    "PATCH /v1/spaces/S/types/T/properties/P",
    {
      set: {
        "format.options.done.name": "Done",
        "format.options.done.color": "green",
        "format.options.done.pos": "a1",
      },
    },
  ],
  [
    "type property option delete S T P done",
    "PATCH /v1/spaces/S/types/T/properties/P",
    { unset: ["format.options.done"] },
  ],
  ["type dataset list S T", "GET /v1/spaces/S/types/T/datasets"],
  [
    `type dataset add S T --draft '{"name":"d","fields":[]}'`,
    "POST /v1/spaces/S/types/T/datasets",
    { name: "d", fields: [] },
  ],
  [
    `type dataset patch S T D --set '{"displayName":"X"}'`,
    "PATCH /v1/spaces/S/types/T/datasets/D",
    { set: { displayName: "X" } },
  ],
  ["type dataset remove S T D", "DELETE /v1/spaces/S/types/T/datasets/D"],
  [`type dataset field add S T D --field '{"key":"k"}'`, "POST /v1/spaces/S/types/T/datasets/D/fields", { key: "k" }],
  ["type dataset field remove S T D F", "DELETE /v1/spaces/S/types/T/datasets/D/fields/F"],
  // Files
  [
    `file attach S O ${notePath} --variant thumb --variant-of F0`,
    "POST /v1/spaces/S/objects/O/files?name=note.txt&variant=thumb&variantOf=F0",
    "hello",
  ],
  [
    `file attach S O ${notePath} --name 'a b.png' --mime image/png`,
    "POST /v1/spaces/S/objects/O/files?name=a+b.png",
    "hello",
  ],
  ["file list S", "GET /v1/spaces/S/files"],
  ["file list S --object O --limit 0", "GET /v1/spaces/S/files?objectId=O&limit=0"],
  ["file get S F", "GET /v1/spaces/S/files/F"],
  ["file download S F --variant thumb", "GET /v1/spaces/S/files/F/content?variant=thumb"],
  ["file status S F", "GET /v1/spaces/S/files/F/status"],
  ["file stats S", "GET /v1/spaces/S/files/stats"],
  ["file subscribe S", "GET /v1/spaces/S/files/subscribe"],
  ["file pin S F", "POST /v1/spaces/S/files/F/pin"],
  ["file retry S F", "POST /v1/spaces/S/files/F/retry"],
  ["file offload S F", "POST /v1/spaces/S/files/F/offload"],
  ["file delete S F --yes", "DELETE /v1/spaces/S/files/F"],
  ["file query S O --total", "POST /v1/spaces/S/objects/O/files/query", { includeTotal: true }],
  [
    "file query-subscribe S O --sort -size --limit 3",
    "POST /v1/spaces/S/objects/O/files/query/subscribe",
    { sort: ["-size"], limit: 3 },
  ],
  ["file cache size", "GET /v1/files/cache"],
  ["file cache free 1048576", "POST /v1/files/cache/free", { bytes: 1_048_576 }],
  ["file cache sweep", "POST /v1/files/cache/sweep"],
  // Members, invites, rights
  ["members list S", "GET /v1/spaces/S/members"],
  ["members me S", "GET /v1/spaces/S/members/me"],
  ["members requests S", "GET /v1/spaces/S/members/requests"],
  ["members get S A1", "GET /v1/spaces/S/members/A1"],
  ["members subscribe S", "GET /v1/spaces/S/members/subscribe"],
  ["invite create S", "POST /v1/spaces/S/invites", {}],
  [
    "invite create S --mode open --permission writer",
    "POST /v1/spaces/S/invites",
    { mode: "open", permission: "writer" },
  ],
  ["invite list S", "GET /v1/spaces/S/invites"],
  ["invite revoke-all S", "DELETE /v1/spaces/S/invites"],
  ["invite get S R", "GET /v1/spaces/S/invites/R"],
  ["invite revoke S R", "DELETE /v1/spaces/S/invites/R"],
  ["invite guest-key S", "POST /v1/spaces/S/guest-key"],
  ["invite guest-key-revoke S", "DELETE /v1/spaces/S/guest-key"],
  ["invite pending", "GET /v1/spaces?status=invite_pending"],
  ["invite accept S", "POST /v1/spaces/S/invite/accept"],
  ["invite decline S", "POST /v1/spaces/S/invite/decline"],
  ["join TOKEN", "POST /v1/spaces/join", { inviteToken: "TOKEN" }],
  ["join TOKEN --name N", "POST /v1/spaces/join", { inviteToken: "TOKEN", metadata: { name: "N" } }],
  ["acl accept S R writer", "POST /v1/spaces/S/acl/accept", { requestRecordId: "R", permission: "writer" }],
  ["acl decline S A1", "POST /v1/spaces/S/acl/decline", { identity: "A1" }],
  [
    "acl grant S A1,A2 admin",
    "POST /v1/spaces/S/acl/permissions",
    {
      changes: [
        { identity: "A1", permission: "admin" },
        { identity: "A2", permission: "admin" },
      ],
    },
  ],
  ["acl remove S A1,A2", "POST /v1/spaces/S/acl/remove", { identities: ["A1", "A2"] }],
  [
    "acl add S A1,A2 reader --name N",
    "POST /v1/spaces/S/acl/add",
    {
      accounts: [
        { identity: "A1", permission: "reader", metadata: { name: "N" } },
        { identity: "A2", permission: "reader", metadata: { name: "N" } },
      ],
    },
  ],
  ["acl ownership S A1 admin", "POST /v1/spaces/S/acl/ownership", { newOwner: "A1", oldOwnerPerm: "admin" }],
  ["acl self-remove S", "POST /v1/spaces/S/acl/self-remove"],
  ["acl cancel-join S", "POST /v1/spaces/S/acl/cancel-join"],
  ["acl stop-sharing S", "POST /v1/spaces/S/acl/stop-sharing"],
  // Sync, events, processes, push, diagnosis
  ["sync-status space S", "GET /v1/spaces/S/sync-status"],
  ["sync-status object S O", "GET /v1/spaces/S/sync-status/objects/O"],
  ["sync-status subscribe", "GET /v1/sync-status/subscribe"],
  ["sync-status subscribe S O", "GET /v1/spaces/S/sync-status/objects/O/subscribe"],
  [
    "events publish --type ui.open --scope space --space S --target t --data '[1]'",
    "POST /v1/events",
    { type: "ui.open", scope: "space", spaceId: "S", target: "t", data: [1] },
  ],
  [
    "events subscribe --scope device --scope account --type process.* --target t --space-id S",
    "GET /v1/events/subscribe?scope=device&scope=account&spaceId=S&type=process.*&target=t",
  ],
  ["process list", "GET /v1/processes"],
  ["process cancel p1", "POST /v1/processes/p1/cancel", {}],
  ["process cancel p1 --identity A1", "POST /v1/processes/p1/cancel", { identity: "A1" }],
  ["push token set --platform ios --token T", "POST /v1/push/token", { platform: "ios", token: "T" }],
  ["push token revoke", "DELETE /v1/push/token"],
  ["push token status", "GET /v1/push/token"],
  ["push subscriptions", "GET /v1/push/subscriptions"],
  ["debug space S", "GET /v1/spaces/S/debug"],
  ["debug object S O", "GET /v1/spaces/S/debug/objects/O"],
  ["debug p2p", "GET /v1/debug/p2p"],
];

/** Commands that make no call, or work on this machine. */
const LOCAL = ["init", "push-node", "run", "version"];

const tokensOf = (line: string): string[] =>
  (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^'(.*)'$/s, "$1"));

describe("[CLI-6] every command is one HTTP call", () => {
  // The fake's control API is where its main API is.
  const server = fakeServer((request) =>
    request.path.endsWith("/subscribe")
      ? streamOf("event: closed\ndata: {}\n\n")
      : Response.json({ ok: true, controlUrl: `http://${server.addr}` }),
  );
  afterAll(() => server[Symbol.dispose]());

  test.each(ROWS.map((row): [string, Row] => [tokensOf(row[0]).join(" "), row]))(
    "%s",
    async (_, [line, request, body]) => {
      server.seen.length = 0;
      const { exitCode, stdout, stderr } = await runCli([...tokensOf(line), "--addr", server.addr]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      expect(JSON.parse(stdout)).toBeObject();
      if (!/ \/v1\//.test(request)) expect(server.seen.shift()?.path).toBe("/v1/health");
      expect(server.seen).toHaveLength(1);
      const [seen] = server.seen;
      expect(`${seen?.method} ${seen?.path}${seen?.query && `?${seen.query}`}`).toBe(request);
      expect(seen?.body).toEqual(body);
      if (body !== undefined && !request.includes("/files?")) expect(seen?.mediaType).toBe("application/json");
    },
  );
});

test("[CLI-6] the table above covers every command there is", async () => {
  const leaves = await commandLeaves();
  const lines = ROWS.map(([line]) => tokensOf(line).join(" "));
  const uncovered = leaves.filter(
    (leaf) => !LOCAL.includes(leaf) && !lines.some((line) => `${line} `.startsWith(`${leaf} `)),
  );
  expect(uncovered).toEqual([]);
});
