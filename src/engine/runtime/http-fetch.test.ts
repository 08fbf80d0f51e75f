import { afterAll, describe, expect, test } from "bun:test";
import { makeTestCa } from "../../../test/support/network/test-ca.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { CallFailure } from "./call-error.ts";
import { createHostAllowList } from "./host-allow-list.ts";
import { createHttpFetch } from "./http-fetch.ts";

const hosts: (string | null)[] = [];
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    hosts.push(request.headers.get("host"));
    if (new URL(request.url).pathname === "/large") return new Response(new Uint8Array(3 << 20));
    return new Response("here");
  },
});
afterAll(() => server.stop(true));

const failure = async (work: Promise<unknown>): Promise<string> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown instanceof CallFailure ? thrown.error.code : String(thrown);
};
const fetchWith = (allow: string[], addresses: Record<string, string[]>, asked: string[] = []) => {
  const call = createHttpFetch({
    allow: createHostAllowList(allow),
    secret: () => undefined,
    resolve: async (name) => {
      asked.push(name);
      // A name that answers differently every time: the classic of rebinding.
      const next = addresses[name]?.shift();
      return next === undefined ? [] : [next];
    },
  });
  return (url: string, more: JsonObject = {}) => call({ url, ...more }, new AbortController().signal);
};

describe("[AGENT-11] addresses", () => {
  test.each([
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "198.18.0.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "fe80::1",
    "fc00::1",
    "fd12::1",
    "ff02::1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "2001:db8::1",
  ])("a listed name at %s reaches nothing", async (address) => {
    const call = fetchWith(["rebound.example"], { "rebound.example": [address] });
    expect(await failure(call("http://rebound.example/"))).toBe("http.forbidden");
  });

  test("public ones pass, and special ones that are listed themselves", () => {
    const list = createHostAllowList(["a.example", "10.0.0.0/8", "192.168.1.5:8080", "localhost"]);
    for (const address of ["93.184.216.34", "2606:2800:220:1::1", "10.9.9.9", "192.168.1.5", "127.0.0.1", "::1"])
      expect([address, list.allowsAddress(address)]).toEqual([address, true]);
    for (const address of ["192.168.1.6", "172.16.0.1", "fd00::1"])
      expect([address, list.allowsAddress(address)]).toEqual([address, false]);
  });

  test("hosts match whole, by port where one is given, and below a domain", () => {
    const list = createHostAllowList(["a.example", "b.example:8443", "*.c.example", "[::1]:80"]);
    const allowed = (host: string, port = 443) => list.allowsHost(host, port);
    expect([allowed("a.example"), allowed("A.EXAMPLE"), allowed("xa.example"), allowed("a.example.evil")]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect([allowed("b.example", 8443), allowed("b.example")]).toEqual([true, false]);
    expect([allowed("x.c.example"), allowed("c.example"), allowed("xc.example")]).toEqual([true, false, false]);
    expect([allowed("::1", 80), allowed("::1", 81)]).toEqual([true, false]);
  });
});

describe("[AGENT-11] the connection", () => {
  test("goes to the very address that was checked; the name is resolved once and stands in the Host header", async () => {
    const asked: string[] = [];
    const call = fetchWith(["name.example", "127.0.0.1"], { "name.example": ["127.0.0.1", "10.0.0.1"] }, asked);
    expect(await call(`http://name.example:${server.port}/`)).toMatchObject({ status: 200, body: "here" });
    expect([asked, hosts.at(-1)]).toEqual([["name.example"], `name.example:${server.port}`]);
    expect(await failure(call(`http://name.example:${server.port}/`))).toBe("http.forbidden");
  });

  test("is none for an unlisted host, whatever it is written like", async () => {
    const call = fetchWith(["ok.example"], {});
    for (const url of [
      "http://127.0.0.1/",
      "http://2130706433/",
      "http://0x7f.1/",
      "http://[::1]/",
      "http://ok.example.evil/",
      "http://evil/#ok.example",
    ])
      expect([url, await failure(call(url))]).toEqual([url, "http.forbidden"]);
    expect(await failure(call("http://user:pass@ok.example/"))).toBe("request.invalid_field");
    expect(await failure(call("ftp://ok.example/"))).toBe("request.invalid_field");
    expect(await failure(call("http://ok.example/", { headers: { a: "b\r\nc: d" } }))).toBe("request.invalid_field");
  });

  test("is verified against the name that was asked for, not the address it goes to", async () => {
    const { ca, certificate, privateKey } = makeTestCa();
    using secure = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert: certificate, key: privateKey },
      fetch: () => new Response("sealed"),
    });
    const call = createHttpFetch({
      allow: createHostAllowList(["127.0.0.1", "name.example"]),
      secret: () => undefined,
      resolve: async () => ["127.0.0.1"],
      ca,
    });
    const at = (host: string) => call({ url: `https://${host}:${secure.port}/` }, new AbortController().signal);
    expect(await at("127.0.0.1")).toMatchObject({ status: 200, body: "sealed" });
    expect(await failure(at("name.example"))).toBe("http.failed");
  });

  test("brings back so much and no more", async () => {
    const call = fetchWith(["127.0.0.1"], {});
    expect(await failure(call(`http://127.0.0.1:${server.port}/large`))).toBe("http.too_large");
  });
});
