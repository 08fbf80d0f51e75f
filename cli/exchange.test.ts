import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../test/support/server/client.ts";
import {
  envelope,
  fakeServer,
  runCli,
  type SeenRequest,
  spawnCli,
  streamOf,
} from "../test/support/server/command-line.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-cli-"));
let answer: (request: SeenRequest) => Response | Promise<Response>;
const server = fakeServer((request) => answer(request));
afterAll(() => {
  server[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  server.seen.length = 0;
  answer = () => Response.json({ ok: true });
});
const cli = (line: string, ...more: string[]) => runCli([...line.split(" "), ...more, "--addr", server.addr]);

describe("[CLI-1] what is printed", () => {
  test("an answer is pretty-printed JSON on stdout and nothing else", async () => {
    answer = () => Response.json([{ id: "x", n: 1.5 }]);
    expect(await cli("status")).toEqual({
      exitCode: 0,
      stdout: '[\n  {\n    "id": "x",\n    "n": 1.5\n  }\n]\n',
      stderr: "",
    });
  });

  test("204 prints nothing", async () => {
    answer = () => new Response(null, { status: 204 });
    expect(await cli("stop")).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });

  test("--verbose shows the exchange on stderr without its secrets", async () => {
    answer = () => Response.json({ accountId: "A1", created: true, mnemonic: "very secret words" });
    const { exitCode, stdout, stderr } = await cli("auth login --verbose --mnemonic", "other secret words");
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ mnemonic: "very secret words" });
    expect(stderr).toContain(`> POST http://${server.addr}/v1/auth\n`);
    expect(stderr).toContain('> {"mnemonic":"<redacted>"}\n');
    expect(stderr).toContain("< 200 OK in ");
    expect(stderr).toContain('< {"accountId":"A1","created":true,"mnemonic":"<redacted>"}\n');
    expect(stderr).not.toContain("secret words");
  });
});

describe("[CLI-1] [SRV-7] errors go to stderr and set the exit code", () => {
  test("4xx ends in 1, with code, message and details", async () => {
    answer = () => envelope(404, "space.not_found", "Unknown space", { spaceId: "S", accepted: ["a", "b"] });
    expect(await cli("space get S")).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: 'svc: space.not_found (404): Unknown space\n  spaceId: S\n  accepted: ["a","b"]\n',
    });
  });

  test("5xx ends in 2", async () => {
    answer = () => envelope(500, "internal", "Something failed");
    expect(await cli("status")).toEqual({ exitCode: 2, stdout: "", stderr: "svc: internal (500): Something failed\n" });
  });

  test("an error before a stream opens is an ordinary one", async () => {
    answer = () => envelope(401, "auth.required", "No account");
    expect(await cli("identities subscribe")).toMatchObject({ exitCode: 1, stdout: "" });
  });

  test("an answer that is no envelope still ends by its status", async () => {
    answer = () => new Response("<h1>Bad gateway</h1>", { status: 502 });
    expect(await cli("status")).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: expect.stringContaining("(502): <h1>Bad gateway</h1>"),
    });
  });

  test("a success that is no JSON is refused", async () => {
    answer = () => new Response("hello");
    expect(await cli("status")).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: expect.stringContaining("is it an svc server?"),
    });
    expect(await cli("identities subscribe")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("does not answer with a stream"),
    });
  });

  test("control characters in an answer do not reach the terminal", async () => {
    answer = () => envelope(400, "request.invalid_field", "bad \u001b[31mname\u0007");
    expect((await cli("status")).stderr).toBe("svc: request.invalid_field (400): bad \\u001b[31mname\\u0007\n");
  });

  test("no server: two lines with the address tried and the command that starts one, exit 3", async () => {
    const gone = fakeServer(() => new Response());
    gone[Symbol.dispose]();
    expect(await runCli(["status", "--addr", gone.addr])).toEqual({
      exitCode: 3,
      stdout: "",
      stderr: `svc: no server answers at ${gone.addr}\nstart one with: svc run --addr ${gone.addr}\n`,
    });
  });

  test("[SRV-7] a timeout says so, exit 3", async () => {
    answer = () => new Promise(() => undefined);
    expect(await cli("status --timeout 50ms")).toEqual({
      exitCode: 3,
      stdout: "",
      stderr: `svc: ${server.addr} did not answer within 0.05 s; --timeout sets how long to wait\n`,
    });
  });

  test("a proxy of the environment is passed by", async () => {
    const { exitCode } = await spawnCli(["status", "--addr", server.addr], {
      env: { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" },
    });
    expect(exitCode).toBe(0);
  });
});

describe("[CLI-1] streams", () => {
  const closed = 'event: closed\ndata: {"reason":"server_shutdown"}\n\n';

  test("print one compact object a frame and end with closed", async () => {
    answer = () =>
      streamOf(
        `event: ready\ndata: {}\n\n: keepalive\n\nevent: changes\ndata: [ {"a" : 1} ]\n\n${closed}event: late\ndata: 1\n\n`,
      );
    expect(await cli("identities subscribe")).toEqual({
      exitCode: 0,
      stdout:
        '{"event":"ready","data":{}}\n{"event":"changes","data":[{"a":1}]}\n{"event":"closed","data":{"reason":"server_shutdown"}}\n',
      stderr: "",
    });
  });

  test("that are cut off without closed end in 3", async () => {
    answer = () => streamOf("event: ready\ndata: {}\n\n");
    expect(await cli("identities subscribe")).toMatchObject({ exitCode: 3, stdout: '{"event":"ready","data":{}}\n' });
  });

  test("whose data is no JSON end in 2", async () => {
    answer = () => streamOf("event: ready\ndata: nonsense\n\n");
    expect(await cli("identities subscribe")).toMatchObject({ exitCode: 2, stdout: "" });
  });

  /** Sends `ready`, then stays open. */
  const openStream = () =>
    new Response(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode("event: ready\ndata: {}\n\n")),
      }),
      { headers: { "content-type": "text/event-stream" } },
    );

  test("are not ended by --timeout, and end with 0 on SIGINT", async () => {
    answer = openStream;
    const child = Bun.spawn(
      [
        process.execPath,
        `${import.meta.dir}/main.ts`,
        "identities",
        "subscribe",
        "--timeout",
        "1ms",
        "--addr",
        server.addr,
      ],
      {
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const reader = child.stdout.getReader();
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).toBe('{"event":"ready","data":{}}\n');
    child.kill("SIGINT");
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stderr).text()).toBe("");
  });

  test("end with 0 when nobody reads them any more", async () => {
    answer = () => streamOf(`${"event: tick\ndata: 1\n\n".repeat(200_000)}${closed}`);
    const child = Bun.spawn(
      [
        "sh",
        "-c",
        `("$0" "$1" identities subscribe --addr ${server.addr}; echo "exit $?" >&2) | head -n 1`,
        process.execPath,
        `${import.meta.dir}/main.ts`,
      ],
      {
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    expect(await new Response(child.stdout).text()).toBe('{"event":"tick","data":1}\n');
    expect(await new Response(child.stderr).text()).toBe("exit 0\n");
  });
});

describe("[CLI-7] files", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251);

  test("download writes raw bytes to stdout", async () => {
    answer = () => new Response(bytes);
    const child = Bun.spawn(
      [process.execPath, `${import.meta.dir}/main.ts`, "file", "download", "S", "F", "--addr", server.addr],
      { stdout: "pipe" },
    );
    expect(new Uint8Array(await new Response(child.stdout).arrayBuffer())).toEqual(bytes);
    expect(await child.exited).toBe(0);
  });

  test("download -o replaces the file whole", async () => {
    answer = () => new Response(bytes);
    const path = join(folder, "out.bin");
    writeFileSync(path, "old");
    expect(await cli("file download S F -o", path)).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
  });

  test("download -o leaves everything as it was when the bytes break off or the server refuses", async () => {
    const before = readdirSync(folder);
    const half = createServer((socket: Socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => {
        socket.end("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 100\r\n\r\nhalf");
      });
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => half.on("listening", resolve));
    const { port } = half.address() as { port: number };
    const path = join(folder, "never.bin");
    expect(await runCli(["file", "download", "S", "F", "-o", path, "--addr", `127.0.0.1:${port}`])).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining("broke off"),
    });
    half.close();
    answer = () => envelope(404, "file.not_found", "Unknown file");
    expect(await cli("file download S F -o", path)).toMatchObject({ exitCode: 1 });
    expect(readdirSync(folder)).toEqual(before);
  });

  test("download -o goes on where it stopped, unless the bytes are others by now", async () => {
    const path = join(folder, "resumed.bin");
    const before = readdirSync(folder);
    const breakOff = createServer((socket: Socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\nETag: "tag1"\r\nContent-Length: ${bytes.length}\r\n\r\n`);
        socket.write(bytes.subarray(0, 40_000));
        const kept = () => existsSync(`${path}.part-tag1`) && statSync(`${path}.part-tag1`).size === 40_000;
        void until(kept, "the bytes to be on the disk").finally(() => socket.destroy());
      });
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => breakOff.on("listening", resolve));
    const { port } = breakOff.address() as { port: number };
    const args = ["file", "download", "S", "F", "-o", path, "--addr", `127.0.0.1:${port}`];
    expect(await runCli(args)).toMatchObject({ exitCode: 3 });
    breakOff.close();
    expect(readdirSync(folder).filter((name) => !before.includes(name))).toEqual(["resumed.bin.part-tag1"]);

    let asked: (string | undefined)[] = [];
    answer = ({ range, ifRange }) => {
      asked = [range, ifRange];
      return new Response(bytes.subarray(39_999), { status: 206, headers: { etag: '"tag1"' } });
    };
    expect(await cli("file download S F -o", path)).toMatchObject({ exitCode: 0 });
    expect(asked).toEqual(["bytes=39999-", '"tag1"']);
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);

    writeFileSync(`${path}.part-tag0`, "of other bytes");
    answer = () => new Response(bytes, { headers: { etag: '"tag1"' } });
    expect(await cli("file download S F -o", path)).toMatchObject({ exitCode: 0 });
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
    expect(readdirSync(folder).filter((name) => name.includes(".part-"))).toEqual([]);
  });

  test("attach sends several files, one after the other, each under its own name", async () => {
    const paths = ["one.txt", "two.txt"].map((name) => join(folder, name));
    for (const path of paths) writeFileSync(path, path);
    answer = () => Response.json({ fileId: "F" }, { status: 201 });
    const ran = await cli("file attach S O", ...paths);
    expect(ran.exitCode).toBe(0);
    expect(server.seen.map(({ query, body }) => [query, body])).toEqual([
      ["name=one.txt", paths[0]],
      ["name=two.txt", paths[1]],
    ]);
    expect(await cli("file attach S O --name x", ...paths)).toMatchObject({ exitCode: 1 });
  });

  test("download waits --timeout for the answer to begin", async () => {
    answer = () => new Promise(() => undefined);
    expect(await cli("file download S F --timeout 50ms")).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining("did not answer within"),
    });
  });

  test("attach takes its media type from the name, or sends stdin without one", async () => {
    const path = join(folder, "page.html");
    writeFileSync(path, "<p>");
    await cli("file attach S O", path);
    expect(server.seen[0]).toMatchObject({
      query: "name=page.html",
      mediaType: expect.stringContaining("text/html"),
      body: "<p>",
    });

    const ran = await spawnCli(["file", "attach", "S", "O", "-", "--addr", server.addr], { stdin: "from stdin" });
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    expect(server.seen[1]).toMatchObject({ query: "", mediaType: "application/octet-stream", body: "from stdin" });
  });
});

describe("[CLI-5] stdin", () => {
  test("secrets of auth login stand one a line", async () => {
    await spawnCli(["auth", "login", "--mnemonic-stdin", "--passkey-stdin", "--addr", server.addr], {
      stdin: "one two\npass\n",
    });
    expect(server.seen[0]?.body).toEqual({ mnemonic: "one two", passkey: "pass" });
  });

  test("hands a member called __proto__ on, for the server to judge", async () => {
    const sent = '{"__proto__":{"a":1},"text":"x"}';
    await spawnCli(["chat", "send", "S", "O", "--file", "-", "--addr", server.addr], { stdin: sent });
    expect(JSON.stringify(server.seen[0]?.body)).toBe(sent);
  });

  test("carries a JSON body, with flags laid over it", async () => {
    await spawnCli(["chat", "send", "S", "O", "--file", "-", "--text", "flag", "--addr", server.addr], {
      stdin: '{"text":"file","attachments":{}}',
    });
    expect(server.seen[0]?.body).toEqual({ text: "flag", attachments: {} });
  });
});
