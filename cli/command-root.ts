import { type CommandNode, group } from "./command.ts";

/** First words that stand for another one. */
export const WORD_ALIASES: ReadonlyMap<string, string> = new Map([
  ["contacts", "identities"],
  ["1-1", "one-to-one"],
  ["direct", "one-to-one"],
]);

/** Every command. Groups are loaded when their word is met, so that each call pays for its own alone. */
export const commandRoot: CommandNode = group("Local-first workspace server and its client", {
  init: () => import("./init.ts").then((m) => m.init),
  run: () => import("./run.ts").then((m) => m.run),
  auth: () => import("./auth.ts").then((m) => m.auth),
  status: () => import("./status.ts").then((m) => m.status),
  stop: () => import("./status.ts").then((m) => m.stop),
  version: () => import("./version.ts").then((m) => m.version),
  account: () => import("./account.ts").then((m) => m.account),
  identities: () => import("./identities.ts").then((m) => m.identities),
  devices: () => import("./devices.ts").then((m) => m.devices),
  space: () => import("./space.ts").then((m) => m.space),
  datasets: () => import("./space.ts").then((m) => m.datasets),
  search: () => import("./search.ts").then((m) => m.search),
  "one-to-one": () => import("./one-to-one.ts").then((m) => m.oneToOne),
  "query-subscribe": () => import("./data.ts").then((m) => m.querySubscribe),
  aggregate: () => import("./data.ts").then((m) => m.aggregate),
  upsert: () => import("./data.ts").then((m) => m.upsert),
  editor: () => import("./editor.ts").then((m) => m.editor),
  chat: () => import("./chat.ts").then((m) => m.chat),
  type: () => import("./type.ts").then((m) => m.type),
  file: () => import("./file.ts").then((m) => m.file),
  members: () => import("./members.ts").then((m) => m.members),
  invite: () => import("./invite.ts").then((m) => m.invite),
  join: () => import("./invite.ts").then((m) => m.join),
  acl: () => import("./acl.ts").then((m) => m.acl),
  "sync-status": () => import("./sync-status.ts").then((m) => m.syncStatus),
  events: () => import("./events.ts").then((m) => m.events),
  process: () => import("./process.ts").then((m) => m.process),
  push: () => import("./push.ts").then((m) => m.push),
  network: () => import("./network.ts").then((m) => m.network),
  debug: () => import("./debug.ts").then((m) => m.debug),
});
