import { type CommandNode, group } from "./command.ts";

/** First words that stand for another one. */
export const WORD_ALIASES: Readonly<Record<string, string>> = {};

/** Every command. Groups are loaded when their word is met, so that each call pays for its own alone. */
export const commandRoot: CommandNode = group("Local-first workspace server and its client", {
  init: () => import("./init.ts").then((m) => m.init),
  run: () => import("./run.ts").then((m) => m.run),
  status: () => import("./status.ts").then((m) => m.status),
  version: () => import("./version.ts").then((m) => m.version),
});
