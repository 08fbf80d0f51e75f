/** Mistakes in a command line: the error says how to correct them, and no request is made. */
import { afterAll, describe, expect, test } from "bun:test";
import { fakeServer, runCli } from "../test/support/server/command-line.ts";

const server = fakeServer(() => Response.json({ ok: true }));
afterAll(() => server[Symbol.dispose]());

describe("[CLI-2] [CLI-4] mistakes in the command line end in 1 and reach no server", () => {
  test.each([
    ["", "svc: no command given"],
    ["nope", 'unknown command "nope"; svc has init, run'],
    ["constructor", 'unknown command "constructor"'],
    ["__proto__", 'unknown command "__proto__"'],
    ["space", "svc: no command given"],
    ["space nope", 'unknown command "nope"; svc space has get, update'],
    ["account nope", 'unknown command "nope"; svc account has set-metadata'],
    ["space toString", 'unknown command "toString"'],
    ["--nope status", "unknown flag --nope before the command"],
    ["status --nope", "unknown flag --nope"],
    ["account --nope", "unknown flag --nope"],
    ["status surplus", 'unexpected argument "surplus"'],
    ["space get", "missing argument <spaceId>"],
    ["space get ..", '<spaceId> cannot be ".."'],
    ["space delete S", "svc space delete cannot be undone; add --yes"],
    ["devices remove P", "add --yes"],
    ["file delete S F", "add --yes"],
    ["file list S --limit x", '--limit takes a whole number, not "x"'],
    ["file list S --limit 1.5", "--limit takes a whole number"],
    ["file cache free ten", "<bytes> takes a whole number"],
    ["query-subscribe S O", "give <objectId> and --dataset NAME, or --properties"],
    ["query-subscribe S --dataset d", "give <objectId> and --dataset NAME"],
    ["query-subscribe S O --properties", "--properties is about the space's objects"],
    ["query-subscribe S O --dataset d --sort a", "--sort needs --limit"],
    ["devices subscribe --sort a", "--sort needs --limit"],
    ["aggregate S O --dataset d", "missing flag --pipeline"],
    ["space settings S --set a", '--set does not take "a"'],
    ["space settings S --set =a", "--set does not take"],
    ["space settings S --set-bool a=yes", "--set-bool does not take"],
    ["space settings S --set-num a=", "--set-num does not take"],
    ["space settings S --set a=1 --set-num a=1", "the setting a is set twice"],
    ["devices register --app a --remove-app a", "a is both added and removed"],
    ["editor edit S O --old a", "give --old and --new"],
    ["editor edit S O --old a --edits []", "leave them out"],
    ["type property option set S T P k", "at least one of --name, --color and --pos"],
    ["type property option delete S T P a.b", "no dot"],
    ["type dataset add S T", "missing flag --draft"],
    ["type dataset add S T --draft []", "--draft takes a JSON object"],
    ["events publish --data {", "--data is not valid JSON"],
    ["events publish --file /nonexistent", "--file cannot read /nonexistent: ENOENT"],
    ["push token set --platform ios", "missing flag --token"],
    ["acl remove S ,", "names nobody"],
    ["auth login --mnemonic a --mnemonic-stdin", "use one"],
    ["file attach S O /nonexistent", "cannot read /nonexistent: ENOENT"],
    ["file attach S O /", "/ is a directory"],
    ["file download S F -o /", "/ is a directory"],
    ["sync-status subscribe S", "missing argument <objectId>"],
  ])("svc %s", async (line, message) => {
    const ran = await runCli(
      line === "" ? [] : [...line.split(" "), ...(line.startsWith("--nope") ? [] : ["--addr", server.addr])],
    );
    expect(ran).toMatchObject({ exitCode: 1, stdout: "", stderr: expect.stringContaining(message) });
    expect(server.seen).toEqual([]);
  });

  test("global flags stand before, between or after the words", async () => {
    for (const line of [
      ["--addr", server.addr, "space", "get", "S"],
      ["space", `--addr=${server.addr}`, "get", "S"],
      ["space", "get", "--addr", server.addr, "S"],
      ["account", "--addr", server.addr],
    ]) {
      expect(await runCli(line)).toMatchObject({ exitCode: 0 });
    }
    expect(await runCli(["--addr", server.addr, "status", "--addr", server.addr])).toMatchObject({ exitCode: 1 });
  });
});
