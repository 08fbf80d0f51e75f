import { command, group } from "./command.ts";

const MEMBERS = "/v1/spaces/:spaceId/members";

export const members = group("Members of a space", {
  list: command({ summary: "List the members", route: `GET ${MEMBERS}` }),
  me: command({ summary: "Show one's own membership", route: `GET ${MEMBERS}/me` }),
  requests: command({ summary: "List the requests to join that wait", route: `GET ${MEMBERS}/requests` }),
  get: command({ summary: "Show a member", route: `GET ${MEMBERS}/:identity` }),
  subscribe: command({ summary: "Watch the members change", route: `GET ${MEMBERS}/subscribe`, stream: true }),
});
