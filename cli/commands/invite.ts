import { command, group } from "./command.ts";
import { PROFILE_HINT_FLAGS, profileOf } from "./shared-flags.ts";

const SPACE = "/v1/spaces/:spaceId";

export const invite = group("Invites to a space, and those one has got", {
  create: command({
    summary: "Make an invite, in place of any other: by default one that asks to join",
    route: `POST ${SPACE}/invites`,
    flags: {
      mode: { kind: "text", hint: "open", summary: "open lets its holder in without being accepted", field: "mode" },
      permission: {
        kind: "text",
        hint: "reader|writer",
        summary: "Role that an open invite gives",
        field: "permission",
      },
    },
  }),
  list: command({ summary: "List the invites of a space", route: `GET ${SPACE}/invites` }),
  "revoke-all": command({ summary: "Revoke every invite of a space", route: `DELETE ${SPACE}/invites` }),
  get: command({ summary: "Show an invite", route: `GET ${SPACE}/invites/:recordId` }),
  revoke: command({ summary: "Revoke an invite", route: `DELETE ${SPACE}/invites/:recordId` }),
  "guest-key": command({
    summary: "Show the space's public read-only token, made if need be",
    route: `POST ${SPACE}/guest-key`,
  }),
  "guest-key-revoke": command({ summary: "Revoke the public read-only token", route: `DELETE ${SPACE}/guest-key` }),
  pending: command({ summary: "List the spaces one was added to", route: "GET /v1/spaces?status=invite_pending" }),
  accept: command({ summary: "Accept having been added to a space", route: `POST ${SPACE}/invite/accept` }),
  decline: command({ summary: "Decline it", route: `POST ${SPACE}/invite/decline` }),
});

export const join = command({
  summary: "Join a space with an invite or a guest token",
  route: "POST /v1/spaces/join",
  args: { invite: { summary: "The token", field: "inviteToken" } },
  flags: PROFILE_HINT_FLAGS,
  body: ({ flags }) => {
    const metadata = profileOf(flags);
    return metadata ? { metadata } : {};
  },
});
