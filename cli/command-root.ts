import { group } from "./command.ts";
import type { CommandNode } from "./command-spec.ts";

/** First words that stand for another one. */
export const WORD_ALIASES: ReadonlyMap<string, string> = new Map([
  ["contacts", "identities"],
  ["1-1", "one-to-one"],
  ["direct", "one-to-one"],
]);

/**
 * Every command, in the sections that help shows. Groups are loaded when their word is met, so that each call pays for its
 * own alone.
 */
export const COMMAND_SECTIONS: Readonly<Record<string, NonNullable<CommandNode["subCommands"]>>> = {
  "This machine": {
    init: () => import("./init.ts").then((m) => m.init),
    run: () => import("./run.ts").then((m) => m.run),
    version: () => import("./version.ts").then((m) => m.version),
  },
  "The server": {
    status: () => import("./status.ts").then((m) => m.status),
    stop: () => import("./status.ts").then((m) => m.stop),
    auth: () => import("./auth.ts").then((m) => m.auth),
    debug: () => import("./debug.ts").then((m) => m.debug),
  },
  "The account": {
    account: () => import("./account.ts").then((m) => m.account),
    devices: () => import("./devices.ts").then((m) => m.devices),
    identities: () => import("./identities.ts").then((m) => m.identities),
    push: () => import("./push.ts").then((m) => m.push),
  },
  "Spaces and people": {
    space: () => import("./space.ts").then((m) => m.space),
    members: () => import("./members.ts").then((m) => m.members),
    invite: () => import("./invite.ts").then((m) => m.invite),
    join: () => import("./invite.ts").then((m) => m.join),
    acl: () => import("./acl.ts").then((m) => m.acl),
    "one-to-one": () => import("./one-to-one.ts").then((m) => m.oneToOne),
  },
  Data: {
    type: () => import("./type.ts").then((m) => m.type),
    datasets: () => import("./space.ts").then((m) => m.datasets),
    upsert: () => import("./upsert.ts").then((m) => m.upsert),
    "query-subscribe": () => import("./data.ts").then((m) => m.querySubscribe),
    aggregate: () => import("./data.ts").then((m) => m.aggregate),
    search: () => import("./search.ts").then((m) => m.search),
  },
  "Documents, chat, files": {
    editor: () => import("./editor.ts").then((m) => m.editor),
    chat: () => import("./chat.ts").then((m) => m.chat),
    file: () => import("./file.ts").then((m) => m.file),
  },
  Agents: {
    trigger: () => import("./trigger.ts").then((m) => m.trigger),
    program: () => import("./program.ts").then((m) => m.program),
  },
  "What happens": {
    "sync-status": () => import("./sync-status.ts").then((m) => m.syncStatus),
    events: () => import("./events.ts").then((m) => m.events),
    process: () => import("./process.ts").then((m) => m.process),
    "push-node": () => import("./push-node.ts").then((m) => m.pushNode),
    network: () => import("./network.ts").then((m) => m.network),
  },
};

export const ROOT_EXAMPLES: readonly string[] = [
  "init",
  "run",
  "space query",
  "query-subscribe <spaceId> <objectId> --dataset tasks --filter '{\"done\":false}'",
];

export const commandRoot: CommandNode = group(
  "Local-first workspace server and its client",
  Object.assign({}, ...Object.values(COMMAND_SECTIONS)),
);
