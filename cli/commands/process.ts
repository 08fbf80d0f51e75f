import { command, group } from "./command.ts";

export const process = group("Long work and how far it is", {
  list: command({ summary: "List what runs, and what has just ended", route: "GET /v1/processes" }),
  cancel: command({
    summary: "Ask for one to be cancelled",
    route: "POST /v1/processes/:id/cancel",
    flags: {
      identity: { kind: "text", hint: "ID", summary: "Whose it is, where several run the same id", field: "identity" },
    },
  }),
});
