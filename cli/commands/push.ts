import { command, group } from "./command.ts";

export const push = group("Push notifications", {
  token: group("The device's push token", {
    set: command({
      summary: "Register the device's token",
      route: "POST /v1/push/token",
      flags: {
        platform: {
          kind: "text",
          hint: "ios|android",
          summary: "Whose token it is",
          required: true,
          field: "platform",
        },
        token: { kind: "text", summary: "The token", required: true, field: "token" },
      },
    }),
    revoke: command({ summary: "Forget the token", route: "DELETE /v1/push/token" }),
    status: command({ summary: "Show whether one is registered", route: "GET /v1/push/token" }),
  }),
  subscriptions: command({ summary: "List the topics one is subscribed to", route: "GET /v1/push/subscriptions" }),
});
