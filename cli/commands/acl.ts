import { UsageError } from "../io/exit.ts";
import { splitList } from "../parse/flag-values.ts";
import { command, group } from "./command.ts";
import { PROFILE_HINT_FLAGS, profileOf } from "./shared-flags.ts";

const ACL = "/v1/spaces/:spaceId/acl";
const IDENTITIES_ARG = { identities: { summary: "Account ids, separated by commas" } } as const;
const PERMISSION_ARG = { permission: { summary: "Role: reader, writer, admin, …", field: "permission" } } as const;
const ROLE_ARG = { permission: { summary: "Role: reader, writer, admin, …" } } as const;

export const acl = group("Who may do what in a space", {
  accept: command({
    summary: "Accept a request to join",
    route: `POST ${ACL}/accept`,
    args: {
      requestRecordId: { summary: "Id of the request, from svc members requests", field: "requestRecordId" },
      ...PERMISSION_ARG,
    },
  }),
  decline: command({
    summary: "Decline a request to join",
    route: `POST ${ACL}/decline`,
    args: { identity: { summary: "Account id of who asked", field: "identity" } },
  }),
  grant: command({
    summary: "Change the role of members",
    examples: ["acl grant <spaceId> <identity> admin"],

    route: `POST ${ACL}/permissions`,
    args: { ...IDENTITIES_ARG, ...ROLE_ARG },
    body: ({ args }) => ({
      changes: identitiesOf(args.identities).map((identity) => ({ identity, permission: args.permission })),
    }),
  }),
  remove: command({
    summary: "Remove members; the space gets a new key",
    route: `POST ${ACL}/remove`,
    args: IDENTITIES_ARG,
    body: ({ args }) => ({ identities: identitiesOf(args.identities) }),
  }),
  add: command({
    summary: "Add accounts without an invite; they find the space waiting for them",
    examples: ["acl add <spaceId> <identity>,<identity> writer"],

    route: `POST ${ACL}/add`,
    args: { ...IDENTITIES_ARG, ...ROLE_ARG },
    flags: PROFILE_HINT_FLAGS,
    body: ({ args, flags }) => {
      const metadata = profileOf(flags);
      return {
        accounts: identitiesOf(args.identities).map((identity) => ({
          identity,
          permission: args.permission,
          ...(metadata ? { metadata } : {}),
        })),
      };
    },
  }),
  ownership: command({
    summary: "Hand the space to another member",
    route: `POST ${ACL}/ownership`,
    args: {
      newOwner: { summary: "Account id of the new owner", field: "newOwner" },
      oldOwnerPerm: { summary: "Role that the old owner keeps: admin, writer, reader", field: "oldOwnerPerm" },
    },
  }),
  "self-remove": command({ summary: "Leave a space", route: `POST ${ACL}/self-remove` }),
  "cancel-join": command({ summary: "Take back a request to join", route: `POST ${ACL}/cancel-join` }),
  "stop-sharing": command({
    summary: "Remove everybody else and revoke every invite",
    route: `POST ${ACL}/stop-sharing`,
  }),
});

function identitiesOf(text: string): string[] {
  const identities = splitList(text);
  if (identities.length === 0) throw new UsageError("<identities> names nobody");
  return identities;
}
