import { group } from "./commands/command.ts";
import type { CommandNode } from "./parse/command-spec.ts";

/** Aliases of first words. */
export const WORD_ALIASES: ReadonlyMap<string, string> = new Map([
  ["contacts", "identities"],
  ["1-1", "one-to-one"],
  ["direct", "one-to-one"],
]);

/**
 * Every command, in the sections that help shows. A group is loaded only when its word occurs, so a call loads only its
 * own.
 */
export const COMMAND_SECTIONS: Readonly<Record<string, NonNullable<CommandNode["subCommands"]>>> = {
  "This machine": {
    init: () => import("./commands/init.ts").then((m) => m.init),
    run: () => import("./commands/run.ts").then((m) => m.run),
    version: () => import("./commands/version.ts").then((m) => m.version),
  },
  "The server": {
    status: () => import("./commands/status.ts").then((m) => m.status),
    stop: () => import("./commands/status.ts").then((m) => m.stop),
    auth: () => import("./commands/auth.ts").then((m) => m.auth),
    debug: () => import("./commands/debug.ts").then((m) => m.debug),
  },
  "The account": {
    account: () => import("./commands/account.ts").then((m) => m.account),
    devices: () => import("./commands/devices.ts").then((m) => m.devices),
    identities: () => import("./commands/identities.ts").then((m) => m.identities),
    push: () => import("./commands/push.ts").then((m) => m.push),
  },
  "Spaces and people": {
    space: () => import("./commands/space.ts").then((m) => m.space),
    members: () => import("./commands/members.ts").then((m) => m.members),
    invite: () => import("./commands/invite.ts").then((m) => m.invite),
    join: () => import("./commands/invite.ts").then((m) => m.join),
    acl: () => import("./commands/acl.ts").then((m) => m.acl),
    "one-to-one": () => import("./commands/one-to-one.ts").then((m) => m.oneToOne),
  },
  Data: {
    type: () => import("./commands/type.ts").then((m) => m.type),
    datasets: () => import("./commands/space.ts").then((m) => m.datasets),
    upsert: () => import("./commands/upsert.ts").then((m) => m.upsert),
    "query-subscribe": () => import("./commands/data.ts").then((m) => m.querySubscribe),
    aggregate: () => import("./commands/data.ts").then((m) => m.aggregate),
    search: () => import("./commands/search.ts").then((m) => m.search),
  },
  "Documents, chat, files": {
    editor: () => import("./commands/editor.ts").then((m) => m.editor),
    chat: () => import("./commands/chat.ts").then((m) => m.chat),
    file: () => import("./commands/file.ts").then((m) => m.file),
  },
  Agents: {
    trigger: () => import("./commands/trigger.ts").then((m) => m.trigger),
    program: () => import("./commands/program.ts").then((m) => m.program),
  },
  "What happens": {
    "sync-status": () => import("./commands/sync-status.ts").then((m) => m.syncStatus),
    events: () => import("./commands/events.ts").then((m) => m.events),
    process: () => import("./commands/process.ts").then((m) => m.process),
    "push-node": () => import("./commands/push-node.ts").then((m) => m.pushNode),
    network: () => import("./commands/network.ts").then((m) => m.network),
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
