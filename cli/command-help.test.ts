/** Every command has its own help. */
import { expect, test } from "bun:test";
import { commandLeaves, runCli } from "../test/support/server/command-line.ts";
import { WORD_ALIASES } from "./command-root.ts";

const aliased = [...WORD_ALIASES].map(([alias, word]) =>
  word === "identities" ? `${alias} list` : `${alias} pending`,
);
test.each([...(await commandLeaves()), ...aliased])("%s --help", async (line) => {
  const words = line.split(" ");
  const help = await runCli([...words, "--help"]);
  const parent = await runCli([...words.slice(0, -1), "--help"]);
  expect(help).toMatchObject({ exitCode: 0, stderr: "" });
  expect(help.stdout).toContain(words.join(" "));
  expect(help.stdout).not.toBe(parent.stdout);
  expect(help.stdout).not.toContain("\u001b");
});
