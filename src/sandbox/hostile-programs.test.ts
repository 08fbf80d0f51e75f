import { afterAll, describe, expect, test } from "bun:test";
import { createTestPrograms } from "../../test/support/program-runs.ts";

type Expected = "fuel_exhausted" | "memory_exhausted" | "failed" | { value: unknown };
const FUEL = "fuel_exhausted";
const MEMORY = "memory_exhausted";

/** `[what it tries, the body of main, how it ends]` */
const HOSTILE: readonly (readonly [string, string, Expected])[] = [
  ["spins", "while (true) {}", FUEL],
  ["spins with nothing in the loop's head", "for (;;);", FUEL],
  [
    "catches everything while it spins",
    "for (;;) { try { for (;;); } catch { continue; } finally { continue; } }",
    FUEL,
  ],
  ["goes round in promises", "const again = () => Promise.resolve().then(again); await again();", FUEL],
  ["storms with promises", "for (;;) Promise.resolve(1).then((x) => x);", FUEL],
  ["awaits for ever", "for (;;) await null;", FUEL],
  ["drives an async generator", "async function* g() { for (;;) yield 1; } for await (const _ of g());", FUEL],
  ["walks a native loop", "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", FUEL],
  ["joins two thousand million holes", "return new Array(2 ** 31).join('').length", FUEL],
  [
    "fills a thing that is no array",
    "Array.prototype.fill.call({ get length() { return 2 ** 50 }, set 0(v) {} }, 0, 2 ** 49)",
    FUEL,
  ],
  ["backtracks in a pattern", "return /^(a+)+$/.test('a'.repeat(40) + '!')", FUEL],
  ["backtracks in another pattern", "return /(x+x+)+y/.exec('x'.repeat(60))", FUEL],
  ["looks back in a pattern", "return /(?<=(a|aa)+)b/.test('a'.repeat(5000))", FUEL],
  ["sorts with a liar", "[...Array(1e5).keys()].sort(() => Math.random() - 0.5); for (;;);", FUEL],
  ["replaces without end", "let s = 'a'; for (;;) s = s.replace(/a/g, 'b').replace(/b/g, 'a');", FUEL],
  ["counts in BigInt", "let n = 3n; for (;;) n = (n * n) % (2n ** 4000n);", FUEL],
  ["traps with a getter", "const o = { get x() { return this.x; } }; for (;;) { try { o.x } catch {} }", FUEL],
  [
    "traps with a proxy",
    "const p = new Proxy({}, { get: (t, k, r) => r[k] }); for (;;) { try { p.x } catch {} }",
    FUEL,
  ],
  ["iterates itself", "const o = { *[Symbol.iterator]() { yield* o; } }; for (;;) { try { [...o] } catch {} }", FUEL],
  ["serializes a getter that spins", "return { get x() { for (;;); } }", FUEL],
  ["serializes with toJSON that spins", "return { toJSON() { for (;;); } }", FUEL],
  ["makes a thenable that never comes to itself", "return { then(f) { this.then(f); } }", "failed"],
  ["compiles code without end", "for (let i = 0; ; i++) Function('return ' + i)();", FUEL],
  ["copies memory", "const b = new Uint8Array(8 << 20); for (;;) b.copyWithin(1, 0);", FUEL],
  ["fills memory", "const b = new Uint8Array(8 << 20); for (;;) b.fill(7);", FUEL],
  ["allocates arrays", "const all = []; for (;;) all.push(new Array(1e5).fill(1));", FUEL],
  ["makes an array of a thousand million", "return new Array(1e9).fill(0).length", MEMORY],
  ["makes a text of a gigabyte", "return 'x'.repeat(2 ** 30 - 25)", MEMORY],
  ["doubles a text", "let s = 'xy'; for (;;) s += s;", "failed"],
  ["takes a gigabyte of bytes", "return new ArrayBuffer(2 ** 30).byteLength", MEMORY],
  ["takes it in pieces", "const all = []; for (;;) all.push(new ArrayBuffer(1 << 20));", MEMORY],
  [
    "holds on after memory has run out",
    "const all = []; for (;;) { try { all.push(new ArrayBuffer(1 << 20)); } catch {} }",
    FUEL,
  ],
  ["recurses", "const f = () => f() + 1; return f();", "failed"],
  ["recurses through JSON", "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o;", FUEL],
  ["recurses through a pattern", "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('')", "failed"],
  ["recurses through code", "return Function('return ' + '['.repeat(1e5) + ']'.repeat(1e5))()", "failed"],
  ["imports a file system", "return await import('node:fs')", "failed"],
  ["imports by URL", "return await import('http://127.0.0.1/x.js')", "failed"],
  ["imports itself", "return typeof (await import('program.js')).default", { value: "function" }],
  [
    "looks for a process",
    "return Function('return typeof process + typeof require + typeof Bun + typeof Deno')()",
    { value: "undefinedundefinedundefinedundefined" },
  ],
  ["runs wasm in wasm", "return typeof WebAssembly", { value: "undefined" }],
  [
    "shares memory",
    "return typeof SharedArrayBuffer === 'undefined' ? 1 : Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "failed",
  ],
  [
    "climbs by a constructor",
    "return svc.query.constructor.constructor('return typeof process')()",
    { value: "undefined" },
  ],
  ["climbs by a caller", "return (function f() { return String(f.caller) })()", "failed"],
  [
    "poisons Object.prototype",
    "Object.prototype.then = function (f) { f(666) }; Object.prototype.output = 'x'; return await svc.query({ a: 1 })",
    { value: 666 },
  ],
  [
    "poisons Promise",
    "Promise.prototype.then = () => { throw 1 }; globalThis.Promise = null; return { mine: true }",
    "failed",
  ],
  [
    "poisons JSON",
    "JSON.stringify = () => 'lies'; JSON.parse = () => 'lies'; return await svc.query({ a: 1 })",
    { value: { a: 1 } },
  ],
  ["poisons the error it throws", "throw { get message() { throw 1 }, get stack() { throw 2 } }", "failed"],
  ["throws a proxy", "throw new Proxy({}, { get() { throw 1 } })", "failed"],
  ["throws nothing", "throw undefined", "failed"],
  ["waits for nothing", "await new Promise(() => {})", "failed"],
  ["floods the host", "for (let i = 0; i < 1e5; i++) await svc.query({ i })", "failed"],
  ["floods the host side by side", "await Promise.all([...Array(200)].map((_, i) => svc.query({ i })))", "failed"],
  ["floods the log", "for (;;) log('x')", "failed"],
  ["passes what is no JSON", "return await svc.query({ n: 1n })", "failed"],
  ["passes a circle", "const a = {}; a.a = a; return await svc.query(a)", "failed"],
  ["passes a megaphone", "return await svc.query({ text: 'x'.repeat(5 << 20) })", "failed"],
  ["returns a function", "return () => 1", "failed"],
  ["returns a symbol", "return Symbol('x')", "failed"],
  ["returns more than may be kept", "return 'x'.repeat(5 << 20)", "failed"],
  ["changes its own context", "ctx.signal.aborted = true; return ctx.signal.aborted", "failed"],
  [
    "breaks strings",
    "return '\\ud800' + await svc.query({ x: '\\udfff' }).then((r) => r.x)",
    { value: "\ud800\udfff" },
  ],
];

const programs = createTestPrograms();
afterAll(() => programs.processes.stop());

describe("[AGENT-9] programs that mean harm end by their own status, and the process goes on", () => {
  for (const [what, body, expected] of HOSTILE) {
    test(what, async () => {
      const source = `export default async function main(args, ctx) { ${body} }`;
      const end = await programs.run({ source });
      if (typeof expected === "string")
        expect([what, end.status, end.error]).toEqual([what, expected, expect.any(String)]);
      else
        expect({ status: end.status, value: JSON.parse(("value" in end && end.value) || "null") }).toEqual({
          status: "ok",
          value: expected.value,
        });
    }, 30_000);
  }
});
