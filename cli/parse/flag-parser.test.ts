import { describe, expect, test } from "bun:test";
import { asksForHelp, type FlagSpecs, nameWords, parseTokens } from "./flag-parser.ts";

const FLAGS = {
  name: { kind: "text", summary: "", hint: "NAME" },
  sort: { kind: "list", summary: "" },
  app: { kind: "texts", summary: "" },
  all: { kind: "switch", summary: "" },
  output: { kind: "text", summary: "", alias: "o" },
  icon: { kind: "text", summary: "", alias: "icon-cid" },
} as const satisfies FlagSpecs;

const parse = (line: string) => {
  const { textsByFlag, words } = parseTokens(line === "" ? [] : line.split(" "), FLAGS);
  return { flags: Object.fromEntries(textsByFlag), words };
};

describe("[CLI-2] flags are read strictly", () => {
  test.each([
    ["", {}, []],
    ["a b", {}, ["a", "b"]],
    ["a --name N b", { name: ["N"] }, ["a", "b"]],
    ["--name=N=1", { name: ["N=1"] }, []],
    ["--name=", { name: [""] }, []],
    ["--sort -ts --sort=a,b", { sort: ["-ts", "a,b"] }, []],
    ["--app x --app y", { app: ["x", "y"] }, []],
    ["--name -5", { name: ["-5"] }, []],
    ["--name --unknown", { name: ["--unknown"] }, []],
    ["--all x", { all: ["true"] }, ["x"]],
    ["--all=false", { all: ["false"] }, []],
    ["-o - x", { output: ["-"] }, ["x"]],
    ["--output=p", { output: ["p"] }, []],
    ["--icon-cid c", { icon: ["c"] }, []],
    ["- --all", { all: ["true"] }, ["-"]],
    ["--all -- --name -x", { all: ["true"] }, ["--name", "-x"]],
  ])("%p", (line, flags, words) => {
    expect(parse(line)).toEqual({ flags, words });
  });

  test.each([
    ["--nope", "unknown flag --nope"],
    ["--nope=1", "unknown flag --nope"],
    ["-x", "unknown flag -x"],
    ["--no-all", "unknown flag --no-all"],
    ["--name", "--name needs a value: --name=<NAME>"],
    ["--name --all", "--name needs a value"],
    ["--name --sort=a", "--name needs a value"],
    ["-o", "-o needs a value"],
    ["--all=1", "--all takes no value"],
    ["--name a --name b", "--name is given twice"],
    ["--icon a --icon-cid b", "--icon-cid is given twice"],
    ["--all --all", "--all is given twice"],
    ["--__proto__ x", "unknown flag --__proto__"],
    ["--constructor x", "unknown flag --constructor"],
  ])("%p is refused", (line, message) => {
    expect(() => parse(line)).toThrow(message);
  });
});

test.each([
  ["--help", true],
  ["a -h b", true],
  ["--nope --help", true],
  ["--name -h", false],
  ["--name --help", true],
  ["--name x --help", true],
  ["-o -h", false],
  ["-- --help", false],
  ["--all --help", true],
])("%p asks for help: %p", (line, expected) => {
  expect(asksForHelp(line.split(" "), FLAGS)).toBe(expected);
});

test("words get their names in order, an optional one may be missing", () => {
  const args = { spaceId: { summary: "" }, objectId: { summary: "", optional: true } } as const;
  expect(nameWords(["S", "O"], args)).toEqual({ spaceId: "S", objectId: "O" });
  expect(nameWords(["S"], args)).toEqual({ spaceId: "S" });
  expect(() => nameWords([], args)).toThrow("missing argument <spaceId>");
  expect(() => nameWords(["S", "O", "X"], args)).toThrow(
    'unexpected argument "X"; the command takes <spaceId> <objectId>',
  );
  expect(() => nameWords(["x"], {})).toThrow('unexpected argument "x"; the command takes none');
});
