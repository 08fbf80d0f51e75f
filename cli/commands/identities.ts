import { command, group } from "./command.ts";

export const identities = group("People known through shared spaces", {
  list: command({ summary: "List the people known", route: "GET /v1/identities" }),
  get: command({ summary: "Show one of them", route: "GET /v1/identities/:identity" }),
  subscribe: command({ summary: "Watch them change", route: "GET /v1/identities/subscribe", stream: true }),
});
