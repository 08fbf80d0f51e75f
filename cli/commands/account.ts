import { command, group } from "./command.ts";
import { PROFILE_FLAGS } from "./shared-flags.ts";

export const account = group(
  "Show the account, or change its profile",
  {
    "set-metadata": command({
      summary: "Change the account's profile; an empty value clears",
      examples: ["account set-metadata --name Ada --description="],

      route: "PUT /v1/account/metadata",
      flags: PROFILE_FLAGS,
      file: true,
    }),
  },
  command({ summary: "Show the account", route: "GET /v1/account" }),
);
