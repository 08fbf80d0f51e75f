/**
 * Input made to break things: prototype keys, NUL and quotes, depth, huge lists, catastrophic patterns, bodies that
 * never end, readers that never read. No 500, no stall, nothing written; afterwards the server is as healthy as before.
 */
import { describe, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../../src/protocol/limits.ts";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject, Page } from "../support/server/client.ts";
import { descriptorsOf, untilLetGo } from "../support/server/descriptors.ts";
import { type Collection, createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { openSocket, type RawSocket } from "../support/server/raw-http.ts";

let items: Collection;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id, { dynamic: true });
  await items.upsert(Array.from({ length: 200 }, (_, i) => ({ id: `r${i}`, fields: { n: i, s: "a".repeat(40) } })));
});

/** Every row there is, as text: what must be the same after hostile requests as before. */
async function everything(): Promise<string> {
  const objects = await shared.client.post<Page>(`${items.path}/objects/query`, { sort: ["id"] });
  const records = await items.query({ sort: ["id"] });
  const spaces = await shared.client.get<Json>("/v1/spaces?status=all");
  return JSON.stringify([objects.records, records.records, spaces]);
}
async function unchangedBy(run: () => Promise<void>): Promise<void> {
  const before = await everything();
  await run();
  expect(await everything()).toBe(before);
}
/** Milliseconds that a health check takes while something else goes on. */
async function healthWithin(limitMs: number): Promise<void> {
  await shared.client.request("GET", "/v1/health", { timeoutMs: limitMs });
}

describe("keys and paths", () => {
  const PROTOTYPE_PATHS = [
    "__proto__",
    "__proto__.polluted",
    "o.__proto__.polluted",
    "constructor.prototype.polluted",
    "prototype.x",
  ];
  for (const path of PROTOTYPE_PATHS) {
    rule(`[API-15] a $set of ${path} pollutes nothing`, async () => {
      const object = await createObject(shared.client, items.spaceId);
      const reply = await shared.client.request("POST", `${items.path}/modify`, {
        body: {
          ...items.target,
          records: [{ id: "proto", upsert: true, ops: [{ type: "$set", path, value: { polluted: "yes" } }] }],
        },
      });
      expect(reply.status).toBeLessThan(500);
      const probe = await shared.client.request("GET", `${items.path}/properties/${object.id}`);
      expect(probe.text).not.toContain("polluted");
      expect((await items.query({ filter: { polluted: "yes" } })).records).toEqual([]);
      await items.deleteRecords(["proto"]);
    });
  }

  rule(
    "[API-15] raw __proto__ keys in filters, sorts, settings and records neither match all nor pollute",
    async () => {
      await unchangedBy(async () => {
        for (const [method, path, raw] of [
          [
            "POST",
            `${items.path}/query`,
            `{"objectId":"${items.objectId}","dataset":"${items.dataset}","filter":{"__proto__":{"n":1}}}`,
          ],
          [
            "POST",
            `${items.path}/query`,
            `{"objectId":"${items.objectId}","dataset":"${items.dataset}","filter":{"n":{"__proto__":{"$gt":1}}}}`,
          ],
          [
            "POST",
            `${items.path}/query`,
            `{"objectId":"${items.objectId}","dataset":"${items.dataset}","sort":["__proto__"]}`,
          ],
          [
            "POST",
            `${items.path}/upsert`,
            `{"objectId":"${items.objectId}","dataset":"${items.dataset}","records":[{"id":"__proto__","fields":{"__proto__":{"x":1}}}],"__proto__":1}`,
          ],
          ["PATCH", `${items.path}/settings`, '{"set":{},"__proto__":{"a":1}}'],
        ] as const) {
          const reply = await shared.client.request(method, path, { raw });
          expect([raw, reply.status < 500]).toEqual([raw, true]);
          if (reply.status === 200 && path.endsWith("/query")) {
            const page = reply.json as unknown as Page;
            if (raw.includes("filter")) expect([raw, page.records.length]).toEqual([raw, 0]);
          }
        }
        expect(({} as JsonObject)["polluted"]).toBeUndefined();
      });
    },
  );

  rule("[INDEX-4] quotes, NUL, controls, wildcards and SQL in paths, filters and sorts are plain text", async () => {
    const names = [
      'a"b',
      "a'b",
      "a\u0000b",
      "a\nb",
      "a\\b",
      "a]b",
      "a[0]",
      "a/b",
      "$",
      "#-1",
      "a%b",
      "a_b",
      "'; DROP TABLE rows; --",
      "\u{1F9ED}",
      "x".repeat(2_000),
    ];
    await unchangedBy(async () => {
      for (const name of names) {
        for (const body of [
          { filter: { [name]: 1 } },
          { filter: { [`${name}.${name}`]: { $exists: true } } },
          { sort: [name] },
          { sort: [`-${name}`], limit: 3 },
        ]) {
          const reply = await shared.client.request("POST", `${items.path}/query`, {
            body: { ...items.target, ...body },
          });
          expect([name, reply.status < 500]).toEqual([name, true]);
        }
      }
    });
  });

  rule("[API-15] what has such a key can be stored, found by it and read back byte for byte", async () => {
    const object = await createCollection(shared.client, items.spaceId, { dynamic: true });
    const names = ['a"b', "a'b", "a\nb", "a\\b", "a]b", "a[0]", "a/b", "a%b", "'; DROP TABLE rows; --", "\u{1F9ED}"];
    for (const [index, name] of names.entries()) {
      await object.modify([{ id: `k${index}`, upsert: true, ops: [{ type: "$set", path: name, value: index }] }]);
      const found = await object.query({ filter: { [name]: index } });
      expect([name, found.records.map((row) => row.id)]).toEqual([name, [`k${index}`]]);
      expect(found.records[0]![name]).toBe(index);
    }
  });
});

describe("depth and size", () => {
  const deep = (depth: number, open: string, close: string): string => `${open.repeat(depth)}1${close.repeat(depth)}`;
  for (const depth of [200, 5_000, 150_000]) {
    rule(
      `[API-15] JSON ${depth} levels deep in body, filter, value and sort is refused or served, never a 500`,
      async () => {
        await unchangedBy(async () => {
          const target = `"objectId":"${items.objectId}","dataset":"${items.dataset}"`;
          for (const raw of [
            deep(depth, "[", "]"),
            `{${target},"filter":{"a":${deep(depth, '{"a":', "}")}}}`,
            `{${target},"filter":${deep(depth, '{"$and":[', "]}").replace("1", "{}")}}`,
            `{${target},"sort":${deep(depth, "[", "]")}}`,
          ]) {
            const reply = await shared.client.request("POST", `${items.path}/query`, { raw });
            expect([raw.slice(0, 80), reply.status < 500]).toEqual([raw.slice(0, 80), true]);
          }
        });
        await healthWithin(2_000);
      },
    );
  }

  rule(
    "[API-15] a path of ten thousand segments in filter, sort and op is refused or served, never a 500",
    async () => {
      const path = Array.from({ length: 10_000 }, () => "a").join(".");
      await unchangedBy(async () => {
        for (const body of [{ filter: { [path]: 1 } }, { sort: [path] }]) {
          const reply = await shared.client.request("POST", `${items.path}/query`, {
            body: { ...items.target, ...body },
          });
          expect(reply.status).toBeLessThan(500);
        }
        const write = await shared.client.request("POST", `${items.path}/modify`, {
          body: { ...items.target, records: [{ id: "r0", ops: [{ type: "$set", path, value: 1 }] }] },
        });
        expect(write.status).toBeGreaterThanOrEqual(400);
        expect(write.status).toBeLessThan(500);
      });
    },
  );

  rule("[API-15] huge $in, thousands of sort keys, thousands of ORs: a 400 or an answer, soon", async () => {
    const many = Array.from({ length: 60_000 }, (_, i) => i);
    for (const body of [
      { filter: { n: { $in: many } } },
      { filter: { $or: many.slice(0, 20_000).map((n) => ({ n })) } },
      { filter: Object.fromEntries(many.slice(0, 20_000).map((n) => [`k${n}`, n])) },
    ]) {
      const reply = await shared.client.request("POST", `${items.path}/query`, {
        body: { ...items.target, ...body },
        timeoutMs: 10_000,
      });
      expect([JSON.stringify(body).slice(0, 40), reply.status]).toEqual([JSON.stringify(body).slice(0, 40), 400]);
    }
  });

  rule("[API-15] a sort of twenty thousand keys is refused or served, never a 500", async () => {
    const sort = Array.from({ length: 20_000 }, (_, i) => `k${i}`);
    const body = { ...items.target, sort };
    const reply = await shared.client.request("POST", `${items.path}/query`, { body, timeoutMs: 10_000 });
    expect(reply.status).toBeLessThan(500);
  });

  rule("[CHANGE-3] a write that cannot fit in a change is 413 request.too_large and writes nothing", async () => {
    await unchangedBy(async () => {
      const noise = randomBytes(720_000).toString("base64"); // fits in a body, not in 512 KiB of sealed change
      const reply = await shared.client.request("POST", `${items.path}/modify`, {
        body: { ...items.target, records: [setFields("huge", { s: noise })] },
      });
      expect([reply.status, reply.text.includes("request.too_large")]).toEqual([413, true]);
    });
  });

  rule("[CHANGE-3] a record that grows without end is kept at its bound, and what is refused is named", async () => {
    const grow = (n: number) => items.modify([setFields("grown", { [`s${n}`]: "x".repeat(400_000) })]);
    const reasons: string[] = [];
    for (let n = 0; n < 5; n++) for (const { reason } of (await grow(n)).rejections ?? []) reasons.push(reason);
    expect(reasons).toEqual(Array(3).fill(`the record would be larger than ${LIMITS.recordBytes} bytes of JSON`));
    expect(JSON.stringify(await items.find("grown")).length).toBeLessThanOrEqual(LIMITS.recordBytes);
    await items.deleteRecords(["grown"]);
  });
});

describe("patterns", () => {
  const CATASTROPHIC = [
    "^(a+)+$",
    "(a|aa)+$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*)*b",
    "(a*)*(a*)*(a*)*b",
    "(?:a?){200}a{200}",
    "^(a|a)*$",
  ];
  for (const pattern of CATASTROPHIC) {
    rule(`[API-15] the pattern ${pattern} is answered in linear time`, async () => {
      const query = shared.client.request("POST", `${items.path}/query`, {
        body: { ...items.target, filter: { s: { $regex: pattern } } },
        timeoutMs: 10_000,
      });
      await healthWithin(5_000);
      expect((await query).status).toBeLessThan(500);
    });
  }

  rule("[API-15] patterns that make engines explode are refused or served, never a 500", async () => {
    for (const pattern of [
      "((((((((((a{1,100}){1,100}){1,100}",
      "a{1000000}",
      "(?=a)",
      "\\1",
      "[",
      "(?P<n>a)\\k<n>",
      "\u0000",
      "(".repeat(500),
      "a{2,1}",
      "(?i)(?-i)a",
      "[z-a]",
    ]) {
      const reply = await shared.client.request("POST", `${items.path}/query`, {
        body: { ...items.target, filter: { s: { $regex: pattern } } },
        timeoutMs: 10_000,
      });
      expect([pattern.slice(0, 30), [200, 400].includes(reply.status)]).toEqual([pattern.slice(0, 30), true]);
    }
  });
});

describe("connections", () => {
  /** Descriptors that the server may have opened for itself meanwhile. */
  const SLACK = 20;
  const requestHead = (length: number, more = ""): string =>
    `POST ${items.path}/modify HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`;

  rule("[API-16] a hundred half-sent bodies hold nobody up and write nothing", async () => {
    await unchangedBy(async () => {
      const body = JSON.stringify({ ...items.target, records: [setFields("half", { n: 1 })] });
      const before = descriptorsOf(shared.server.pid);
      const sockets = await Promise.all(Array.from({ length: 100 }, () => openSocket(shared.server.port)));
      for (const [index, socket] of sockets.entries())
        socket.write(requestHead(body.length, "Expect: 100-continue\r\n") + body.slice(0, index % body.length));
      for (const socket of sockets) await socket.readUntil("100 Continue");
      await healthWithin(2_000);
      for (const socket of sockets) socket.destroy();
      await untilLetGo(shared.server.pid, before, SLACK);
    });
  });

  rule("[API-16] slow-loris: heads and bodies that trickle do not keep others from being served", async () => {
    await unchangedBy(async () => {
      const sockets = await Promise.all(Array.from({ length: 60 }, () => openSocket(shared.server.port)));
      for (const [index, socket] of sockets.entries()) {
        socket.write(index % 2 ? `GET /v1/health HTTP/1.1\r\nHost: ${shared.server.address}\r\n` : requestHead(500));
      }
      for (let tick = 0; tick < 10; tick++) {
        for (const [index, socket] of sockets.entries()) socket.write(index % 2 ? `X-Slow-${tick}: 1\r\n` : "{");
        await healthWithin(2_000);
      }
      for (const socket of sockets) socket.destroy();
    });
  });

  rule("[API-14] garbage, oversized heads and pipelined junk are refused without a 5xx", async () => {
    for (const text of [
      "\u0000\u0001\u0002\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET /v1/health HTTP/1.1\r\nHost: ${shared.server.address}\r\nX-Big: ${"a".repeat(200_000)}\r\n\r\n`,
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Length: -5\r\n\r\n`,
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `POST /v1/spaces HTTP/1.1\r\nHost: ${shared.server.address}\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n`,
    ]) {
      const socket = await openSocket(shared.server.port);
      socket.write(text);
      socket.end(); // what it takes for unfinished is over, too
      expect(await socket.closed()).not.toMatch(/^HTTP\/1\.1 5(?!05)/); // 505 is the honest answer to HTTP/9.9
      socket.destroy();
      await healthWithin(2_000);
    }
  });

  rule(
    "[LIVE-4] two hundred stream readers that never read: writes go on, memory stays bounded, others are served",
    async () => {
      const rssBefore = residentBytes(shared.server.pid);
      const before = descriptorsOf(shared.server.pid);
      const body = JSON.stringify({ ...items.target, driftBudgetPercent: 100 });
      const sockets: RawSocket[] = [];
      for (let i = 0; i < 200; i++) {
        const socket = await openSocket(shared.server.port);
        socket.write(
          `POST ${items.path}/query/subscribe HTTP/1.1\r\nHost: ${shared.server.address}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
        sockets.push(socket);
      }
      for (const socket of sockets) {
        await socket.readUntil("event: snapshot");
        socket.pause();
      }
      const filler = "y".repeat(8_000);
      for (let round = 0; round < 40; round++) {
        await items.modify(Array.from({ length: 20 }, (_, i) => setFields(`r${i}`, { n: i, s: `${round}${filler}` })));
      }
      await healthWithin(5_000);
      // 40 rounds of 160 kB to 200 readers would be 1.3 GB if each kept its own copy.
      expect(residentBytes(shared.server.pid) - rssBefore).toBeLessThan(300 * 1024 * 1024);
      for (const socket of sockets) socket.destroy();
      await untilLetGo(shared.server.pid, before, SLACK);
      await healthWithin(2_000);
    },
    60_000,
  );

  rule(
    "[API-16] a stream whose reader vanishes is given up: many opens and closes leave no descriptors behind",
    async () => {
      const before = descriptorsOf(shared.server.pid);
      for (let round = 0; round < 5; round++) {
        const streams = await Promise.all(
          Array.from({ length: 30 }, () => shared.client.stream("POST", `${items.path}/query/subscribe`, items.target)),
        );
        await Promise.all(streams.map((stream) => stream.close()));
      }
      await untilLetGo(shared.server.pid, before, SLACK);
    },
  );
});

describe("afterwards", () => {
  rule(
    "[API-15] the server is healthy, no 5xx was logged, and everything reads as before after a restart",
    async () => {
      expect(await shared.client.get<JsonObject>("/v1/health")).toMatchObject({ status: "ok" });
      expect(shared.server.stderr()).not.toMatch(/\b(500 internal|"status":500|status=500|panic)\b/);
      const { records } = await items.query({ filter: { id: { $in: ["r30", "r31"] } }, sort: ["id"] });
      expect(records.map((row) => row.id)).toEqual(["r30", "r31"]);
      const stray = readdirSync(shared.server.dataDir, { recursive: true }).map(String);
      for (const name of stray) expect(statSync(join(shared.server.dataDir, name)).mode & 0o002).toBe(0);
    },
  );
});

/** VmRSS of a process, in bytes. */
function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1024;
}
