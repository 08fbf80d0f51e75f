/** The log: one stream to stderr, levels, three formats, extra output paths. */
import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { until } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const ESCAPE = "\u001b[";
const lines = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

describe("logging", () => {
  rule("[SRV-11] stdout carries LISTENING (and CONTROL) alone; the log goes to stderr", async () => {
    await using server = await startServer({ args: ["--log-level", "debug"] });
    await server.client.get("/v1/account");
    await until(() => server.stderr() !== "", "a log line");
    await server.stop();
    for (const line of lines(server.stdout())) expect(line).toMatch(/^(LISTENING|CONTROL) \S+$/);
  });

  rule("[SRV-11] format json: every line is one JSON object", async () => {
    await using server = await startServer({ config: "log:\n  format: json\n  defaultLevel: debug\n" });
    await server.client.get("/v1/account");
    await server.stop();
    const logged = lines(server.stderr());
    expect(logged.length).toBeGreaterThan(0);
    for (const line of logged) expect(JSON.parse(line)).toBeObject();
  });

  rule("[SRV-11] format plaintext carries no escape sequences, colorized does", async () => {
    for (const [format, colored] of [
      ["plaintext", false],
      ["colorized", true],
    ] as const) {
      await using server = await startServer({
        config: `log:\n  format: ${format}\n  defaultLevel: debug\n`,
        env: colored ? { NO_COLOR: "" } : {},
      });
      await server.client.get("/v1/account");
      await server.stop();
      expect(server.stderr()).not.toBe("");
      expect(server.stderr().includes(ESCAPE)).toBe(colored);
    }
  });

  rule("[SRV-11] NO_COLOR is honoured", async () => {
    await using server = await startServer({ config: "log:\n  format: colorized\n  defaultLevel: debug\n" });
    await server.client.get("/v1/account");
    await server.stop();
    expect(server.stderr()).not.toBe("");
    expect(server.stderr()).not.toContain(ESCAPE);
  });

  rule("[SRV-11] --log-level error silences info; debug says more than info", async () => {
    const said: Record<string, number> = {};
    for (const level of ["error", "info", "debug"]) {
      await using server = await startServer({ args: ["--log-level", level] });
      await server.client.get("/v1/account");
      await server.stop();
      said[level] = lines(server.stderr()).length;
    }
    expect(said["error"]).toBe(0);
    expect(said["info"]).toBeGreaterThan(0);
    expect(said["debug"]).toBeGreaterThan(said["info"]!);
  });

  rule("[SRV-11] SVC_LOG_LEVEL sets the level and --log-level wins over it", async () => {
    await using loud = await startServer({ env: { SVC_LOG_LEVEL: "debug" } });
    await loud.stop();
    await using quiet = await startServer({ env: { SVC_LOG_LEVEL: "debug" }, args: ["--log-level", "error"] });
    await quiet.stop();
    expect(lines(loud.stderr()).length).toBeGreaterThan(0);
    expect(lines(quiet.stderr())).toEqual([]);
  });

  rule("[SRV-11] log.addOutputPaths: the same lines are written to each listed file", async () => {
    using dir = scratchDir();
    const paths = [join(dir.path, "one.log"), join(dir.path, "two.log")];
    await using server = await startServer({
      config: `log:\n  format: json\n  defaultLevel: debug\n  addOutputPaths: ${JSON.stringify(paths)}\n`,
    });
    await server.client.get("/v1/account");
    await server.stop();
    for (const path of paths) expect(readFileSync(path, "utf8")).toBe(server.stderr());
  });

  rule("[SRV-11] a 5xx is logged at error, with the stack; a 4xx and what is not offered are not", async () => {
    await using server = await startServer({
      config: "log:\n  format: json\n  defaultLevel: error\n",
      env: { SVC_NETWORK_URL: "nats://127.0.0.1:1" },
    });
    const { id } = await createSpace(server.client);
    expect((await server.client.request("DELETE", `/v1/spaces/${id}/types/any`)).status).toBe(501);
    expect((await server.client.request("GET", "/v1/spaces/unknown")).status).toBe(404);
    expect((await server.client.request("POST", "/v1/network/init", { body: {} })).status).toBe(503);
    await server.stop();
    const logged = lines(server.stderr()).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatchObject({ level: "error", code: "network.unavailable", status: 503 });
    expect(JSON.stringify(logged[0])).toContain("    at ");
  });

  for (const [level, found] of [
    ["info", [false, true, true]],
    ["debug", [true, true, true]],
  ] as const) {
    rule(
      `[API-17] at ${level} the request id of every 5xx${level === "debug" ? " and 4xx" : ""} is in the log`,
      async () => {
        await using server = await startServer({
          args: ["--log-level", level],
          env: { SVC_NETWORK_URL: "nats://127.0.0.1:1" },
        });
        const { id } = await createSpace(server.client);
        const replies = [
          await server.client.request("GET", "/v1/spaces/unknown"),
          await server.client.request("DELETE", `/v1/spaces/${id}/types/any`),
          await server.client.request("POST", "/v1/network/init", { body: {} }),
        ];
        expect(replies.map(({ status }) => status)).toEqual([404, 501, 503]);
        await server.stop();
        const ids = replies.map(({ headers }) => headers.get("x-request-id") as string);
        expect(ids.map((each) => server.stderr().includes(each))).toEqual([...found]);
      },
    );
  }

  rule("[SRV-11] a network that cannot be reached is one line with its address, without a stack", async () => {
    let attempts = 0;
    using deaf = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open(socket) {
          attempts++;
          socket.end();
        },
        data() {},
      },
    });
    const address = `127.0.0.1:${deaf.port}`;
    await using server = await startServer({ env: { SVC_NETWORK_URL: `nats://user:canary-pass@${address}` } });
    await until(() => attempts > 4, "several attempts", 20_000);
    await server.stop();
    const logged = lines(server.stderr()).filter((line) => line.includes("network: cannot use it"));
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain(`nats://${address}`);
    expect(logged[0]).toMatch(/The network cannot be reached; retry: \S/);
    expect(server.stderr()).not.toContain("    at ");
    expect(server.stderr()).not.toContain("canary-pass");
  });

  rule("[API-9] a refused page is one line a minute at the default level, and the answer says the same", async () => {
    await using server = await startServer();
    const origin = "http://localhost:5173";
    const ask = async (from: string) => server.client.request("GET", "/v1/health", { headers: { Origin: from } });
    for (let i = 0; i < 3; i++)
      expect((await ask(origin)).text).toContain(`Refused origin ${origin}; http.allowedOrigins would allow it`);
    expect((await ask("null")).text).not.toContain("would allow it");
    await server.stop();
    const logged = lines(server.stderr()).filter((line) => line.includes("refused origin"));
    expect(logged).toHaveLength(2);
    expect(logged[0]).toContain(`refused origin ${origin}; http.allowedOrigins would allow it`);
    await using allowed = await startServer({ env: { SVC_HTTP_ALLOWED_ORIGINS: origin } });
    expect((await allowed.client.request("GET", "/v1/health", { headers: { Origin: origin } })).status).toBe(200);
  });

  rule("[API-17] every answer carries a request id of its own, and the log names it", async () => {
    await using server = await startServer({ config: "log:\n  format: json\n  defaultLevel: debug\n" });
    const ids = new Set<string>();
    for (const path of ["/v1/health", "/v1/account", "/v1/nope", "/v1/spaces/unknown"]) {
      const id = (await server.client.request("GET", path)).headers.get("x-request-id");
      expect(id).toBeString();
      ids.add(id!);
    }
    expect(ids.size).toBe(4);
    await server.stop();
    for (const id of ids) expect(server.stderr()).toContain(id);
  });
});
