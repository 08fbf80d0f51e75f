import { systemClock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { createLog, fileOutput, stderrOutput } from "../../base/log-writer.ts";
import { StartRefusal } from "../start-refusal.ts";
import type { Config } from "./config.ts";

/** Opens the log as configured: standard error and `log.addOutputPaths`. Throws StartRefusal for a path that cannot be opened. */
export function openLog(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): { log: Log; close(): void } {
  const format = config["log.format"];
  const files = config["log.addOutputPaths"].map((path) => {
    try {
      return fileOutput(path, format);
    } catch (error) {
      const source = config.sourceOf("log.addOutputPaths");
      const cause = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
      throw new StartRefusal(
        `${source}: log.addOutputPaths must name files that can be opened for writing, in folders that exist; ${path} is not one (${cause})`,
      );
    }
  });
  const outputs = [stderrOutput(format, env), ...files];
  return {
    log: createLog({ level: config["log.defaultLevel"], outputs, clock: systemClock }),
    close: () => {
      for (const file of files) file[Symbol.dispose]();
    },
  };
}
