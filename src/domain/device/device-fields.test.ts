import { describe, expect, test } from "bun:test";
import { refusalOf } from "../../../test/support/errors-of.ts";
import { checkDeviceUpdate, checkSlug, type DeviceUpdateInput, deviceOs } from "./device-fields.ts";

describe("an update of the own row (DEV-1)", () => {
  test("may name the device and merge apps one by one", () => {
    expect(checkDeviceUpdate({ name: "Desk" })).toEqual({ name: "Desk" });
    expect(checkDeviceUpdate({ name: "", apps: { agent: { version: "1", beta: true, build: 5 }, old: null } })).toEqual(
      {
        apps: new Map<string, Record<string, string | number | boolean> | null>([
          ["agent", { version: "1", beta: true, build: 5 }],
          ["old", null],
        ]),
      },
    );
    expect(checkDeviceUpdate({ apps: { agent: {} } }).apps!.get("agent")).toEqual({});
  });

  test("that says nothing is request.missing_field", () => {
    for (const input of [{}, { name: "" }, { apps: {} }, { name: "", apps: {} }]) {
      expect(refusalOf(() => checkDeviceUpdate(input)).code).toBe("request.missing_field");
    }
  });

  const FAULTS: [field: string, input: DeviceUpdateInput][] = [
    ["name", { name: "x".repeat(257) }],
    ["apps", { apps: { "": {} } }],
    ["apps", { apps: { "a.b": {} } }],
    ["apps", { apps: { "*": null } }],
    ["apps", { apps: JSON.parse('{"__proto__": {}}') }],
    ["apps", { apps: { ["x".repeat(129)]: {} } }],
    ["apps.a", { apps: { a: "1" } }],
    ["apps.a", { apps: { a: ["1"] } }],
    ["apps.a", { apps: { a: 5 } }],
    ["apps.a", { apps: { a: { "b.c": 1 } } }],
    ["apps.a.b", { apps: { a: { b: null } } }],
    ["apps.a.b", { apps: { a: { b: {} } } }],
    ["apps.a.b", { apps: { a: { b: [] } } }],
  ];
  for (const [field, input] of FAULTS) {
    test(`request.invalid_field names ${field} of ${JSON.stringify(input).slice(0, 50)}`, () => {
      expect(refusalOf(() => checkDeviceUpdate(input))).toMatchObject({
        code: "request.invalid_field",
        details: { field },
      });
    });
  }
});

test("a slug is not empty and has no dot", () => {
  expect(checkSlug("app", "agent")).toBe("agent");
  for (const slug of ["", "a.b", "*"]) {
    expect(refusalOf(() => checkSlug("app", slug))).toMatchObject({
      code: "request.invalid_field",
      details: { field: "app" },
    });
  }
});

test("the system is one of the vocabulary", () => {
  const names = ["linux", "darwin", "win32", "cygwin", "android", "ios", "freebsd", "aix"].map(deviceOs);
  expect(names).toEqual(["linux", "darwin", "windows", "windows", "android", "ios", "linux", "linux"]);
});
