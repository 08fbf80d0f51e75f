import { VERSION_STRING } from "../../src/base/version.ts";
import { EXIT } from "../io/exit.ts";
import { prettyJson, writeOut } from "../io/output.ts";
import { localCommand } from "./command.ts";

export const version = localCommand({
  summary: "Show the version of this executable (that of the server is in svc status)",
  run: async () => {
    await writeOut(prettyJson({ version: VERSION_STRING }));
    return EXIT.ok;
  },
});
