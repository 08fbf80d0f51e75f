import { command, group } from "./command.ts";
import { PROFILE_HINT_FLAGS, profileOf } from "./shared-flags.ts";

export const oneToOne = group("Spaces of two people", {
  start: command({
    summary: "Start a one-to-one space with somebody, or take back having declined it",
    route: "POST /v1/spaces/one-to-one",
    args: { identity: { summary: "Account id of the other person", field: "otherIdentity" } },
  }),
  accept: command({
    summary: "Accept a pending one-to-one space",
    route: "POST /v1/spaces/:spaceId/one-to-one/accept",
  }),
  decline: command({
    summary: "Decline a pending one-to-one space",
    route: "POST /v1/spaces/:spaceId/one-to-one/decline",
  }),
  register: command({
    summary: "Register a request that reached you some other way",
    route: "POST /v1/spaces/one-to-one/register-incoming",
    args: { identity: { summary: "Account id of the other person", field: "peerIdentity" } },
    flags: PROFILE_HINT_FLAGS,
    body: ({ flags }) => {
      const displayHint = profileOf(flags);
      return displayHint ? { displayHint } : {};
    },
  }),
  pending: command({
    summary: "List the requests that wait for an answer",
    route: "GET /v1/spaces?status=one_to_one_pending",
  }),
});
