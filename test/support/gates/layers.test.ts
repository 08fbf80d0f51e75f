import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FOLDERS, findBreaches, ROOMS, readSources } from "./layers.ts";

const breachesOf = (path: string, source: string) => findBreaches(new Map([[path, source]]));

describe("a planted breach fails the gate", () => {
  test.each([
    ["a room importing one below it", "src/base/a.ts", `import { b } from "../protocol/b.ts";`],
    ["a type import", "src/store/a.ts", `import type { B } from "../space/b.ts";`],
    ["a type name in a list", "src/store/a.ts", `import { type B } from "../space/b.ts";`],
    ["a re-export", "src/query/a.ts", `export * from "../change/b.ts";`],
    ["a type re-export", "src/query/a.ts", `export type { B } from "../change/b.ts";`],
    ["an import for its effects", "src/crypto/a.ts", `import "../store/b.ts";`],
    ["an import over several lines", "src/crypto/a.ts", `import {\n  b,\n  c,\n} from "../store/b.ts";`],
    ["a dynamic import", "src/change/a.ts", `const b = await import("../engine/b.ts");`],
    ["a type query", "src/change/a.ts", `let b: import("../engine/b.ts").B;`],
    ["a require", "src/change/a.ts", `const b = require("../engine/b.ts");`],
    ["a dynamic import in a template", "src/change/a.ts", "const b = await import(`../engine/b.ts`);"],
    ["a computed import", "src/change/a.ts", "const b = await import(path);"],
    ["a worker of a lower room", "src/store/a.ts", `new Worker(workerEntry("src/engine/b-worker.ts"));`],
    ["the HTTP shell reaching past the engine", "src/http/a.ts", `import { b } from "../store/b.ts";`],
    ["the engine importing the HTTP shell", "src/engine/a.ts", `import { b } from "../http/b.ts";`],
    ["sync importing a feature", "src/sync/link/a.ts", `import { b } from "../../domain/chat/b.ts";`],
    ["sync importing the store", "src/sync/network/a.ts", `import type { B } from "../../store/b.ts";`],
    ["sync importing what makes changes", "src/sync/session/a.ts", `import { b } from "../../change/graph/b.ts";`],
    ["sync importing the ACL", "src/sync/a.ts", `import type { B } from "../acl/b.ts";`],
    ["sync importing an open space", "src/sync/lan/a.ts", `import type { Space } from "../../space/space.ts";`],
    ["sync reaching behind the replica", "src/sync/a.ts", `import { b } from "../../../src/space/replica/take.ts";`],
    ["a feature importing its sibling", "src/domain/chat/a.ts", `import { b } from "../editor/b.ts";`],
    ["a room importing the composition root", "src/http/a.ts", `import { b } from "../serve.ts";`],
    ["the command line touching storage", "cli/commands/space.ts", `import { b } from "../../src/store/b.ts";`],
    ["the command line starting a server", "cli/commands/space.ts", `import { b } from "../../src/serve.ts";`],
    ["svc run touching storage", "cli/commands/run.ts", `import { b } from "../../src/store/b.ts";`],
    ["the executable's entry touching storage", "cli/main.ts", `import { b } from "../src/store/b.ts";`],
    ["a sandbox that knows the engine", "src/sandbox/a.ts", `import { b } from "../engine/b.ts";`],
    ["a push node that knows the engine", "src/push-node/a.ts", `import { b } from "../engine/b.ts";`],
    ["a server that knows the push node", "src/engine/a.ts", `import { b } from "../push-node/b.ts";`],
    ["svc push-node starting a server", "cli/commands/push-node.ts", `import { b } from "../../src/serve.ts";`],
    ["the page taking a value", "ui/a.ts", `import { b } from "../src/protocol/b.ts";`],
    ["the page importing another room", "ui/a.tsx", `import type { B } from "../src/engine/b.ts";`],
    ["a part of the page importing a view", "ui/parts/a.tsx", `import { b } from "../space/b.tsx";`],
    ["a view importing the page", "ui/space/a.tsx", `import { b } from "../../../ui/app.tsx";`],
    ["a filter that knows how it is run", "src/query/filter/a.ts", `import { b } from "../run/b.ts";`],
    ["an ACL record that knows its log", "src/acl/record/a.ts", `import { b } from "../log/b.ts";`],
    ["a change's codec that knows the fold", "src/change/codec/a.ts", `import type { B } from "../fold/b.ts";`],
    ["a change's fold that knows the engine", "src/change/fold/a.ts", `import type { B } from "../space-engine.ts";`],
    ["a session that knows a transport", "src/sync/session/a.ts", `import { b } from "../lan/b.ts";`],
    ["a transport that knows another", "src/sync/lan/a.ts", `import { b } from "../network/b.ts";`],
    ["a replica that knows an open space", "src/space/replica/a.ts", `import type { Space } from "../space.ts";`],
    ["a service that knows its boot", "src/engine/a.ts", `import type { B } from "./boot/b.ts";`],
    ["a shell that knows a route", "src/http/a.ts", `import { b } from "./routes/b.ts";`],
    ["a port of a feature that comes later", "src/domain/object/a.ts", `import type { B } from "../chat/port.ts";`],
    ["a folder that no order names", "src/base/a.ts", `import { b } from "./new/b.ts";`],
    ["reading an answer by what was asked", "cli/io/a.ts", `import { b } from "../commands/b.ts";`],
    ["a folder that the page does not have", "ui/views/a.tsx", `import { b } from "../api/b.ts";`],
    ["sources importing the command line", "src/engine/a.ts", `import { b } from "../../cli/b.ts";`],
    ["sources importing test support", "src/engine/a.ts", `import { b } from "../../test/support/b.ts";`],
    ["sources importing a test", "src/engine/a.ts", `import { b } from "./b.test.ts";`],
    [
      "a reference importing what it judges",
      "test/support/oracle/reference-a.ts",
      `import { b } from "../../../src/change/b.ts";`,
    ],
  ])("%s", (_what, path, source) => {
    expect(breachesOf(path, source)).toHaveLength(1);
  });
});

describe("what is allowed passes", () => {
  test.each([
    ["a room importing one above it", "src/change/a.ts", `import { b } from "../crypto/b.ts";`],
    ["a worker of the same room", "src/store/a.ts", `new Worker(workerEntry("src/store/b-worker.ts"));`],
    ["a room importing itself", "src/change/a.ts", `import { b } from "./b.ts";`],
    ["a sibling's port", "src/domain/chat/a.ts", `import type { B } from "../editor/port.ts";`],
    ["a sibling's named port", "src/domain/chat/a.ts", `import type { B } from "../editor/block-port.ts";`],
    [
      "sync taking the replica's port",
      "src/sync/lan/a.ts",
      `import type { Replica } from "../../space/port/replica.ts";`,
    ],
    ["packages", "src/base/a.ts", `import { b } from "node:fs";`],
    ["types for the page", "ui/a.ts", `import type { B } from "../src/protocol/b.ts";`],
    ["a view importing a part of the page", "ui/space/a.tsx", `import { b } from "../parts/b.tsx";`],
    ["a run that knows its filter", "src/query/run/a.ts", `import { b } from "../filter/b.ts";`],
    ["the page importing a view", "ui/app.tsx", `import { b } from "./space/b.tsx";`],
    ["svc run starting a server", "cli/commands/run.ts", `await import("../../src/serve.ts");`],
    ["svc push-node starting a node", "cli/commands/push-node.ts", `await import("../../src/push-node/b.ts");`],
    ["the executable's entry being a child process", "cli/main.ts", `await import("../src/sandbox/b.ts");`],
    ["a test of any room", "src/base/a.test.ts", `import { b } from "../engine/b.ts";`],
    ["a commented import", "src/base/a.ts", `/**\n * import { b } from "../engine/b.ts";\n */\n// await import(name)`],
  ])("%s", (_what, path, source) => {
    expect(breachesOf(path, source)).toEqual([]);
  });
});

test("an import the gate cannot read is an error, not a pass", () => {
  const source = `const a = 1; import { b } from "../engine/b.ts"; console.log(a, b);`;
  expect(() => breachesOf("src/base/a.ts", source)).toThrow("cannot read");
});

test("the gate reads the real tree", async () => {
  const sources = await readSources(join(import.meta.dir, "../../.."));
  expect(sources.has("src/protocol/errors.ts")).toBe(true);
  expect(sources.has("test/support/gates/layers.ts")).toBe(true);
});

describe("the table of rooms in docs/architecture.md", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/architecture.md"), "utf8");
  const documented = page.split("\n").flatMap((line) => {
    const room = /^\| `(?:src\/)?([a-z-]+)(?:\/|\.ts)` \|/.exec(line)?.[1];
    const [folders = "", imports = ""] = line.split("|").slice(3);
    return room === undefined ? [] : [{ room, folders, imports }];
  });

  test("names each room once, below what it imports", () => {
    const rooms = documented.map(({ room }) => room);
    expect(rooms.toSorted()).toEqual(Object.keys(ROOMS).toSorted());
    const isBelow = (room: string, from: string) => rooms.indexOf(room) > rooms.indexOf(from);
    expect(rooms.filter((room) => !ROOMS[room]!.every((from) => isBelow(room, from)))).toEqual([]);
  });

  test("says what each may import", () => {
    const listed = documented.map(({ room, imports }) => [room, imports.match(/[a-z-]+(?![^(]*\))/g) ?? []]);
    expect(Object.fromEntries(listed)).toEqual(ROOMS);
  });

  test("says in which order its folders stand", () => {
    const listed = documented.map(({ room, folders }) => [room, folders.match(/[a-z-]+|·/g)]);
    const inOrder = Object.entries(FOLDERS).map(([room, folders]) => [room, folders.map((name) => name || "·")]);
    expect(Object.fromEntries(listed.filter(([, folders]) => folders))).toEqual(Object.fromEntries(inOrder));
  });
});
