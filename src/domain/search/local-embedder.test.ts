import { expect } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { ENGLISH_MODEL, hasModels, modelDirectory, NO_MODELS } from "../../../test/support/models/models.ts";
import { scratchDir } from "../../../test/support/scratch.ts";
import { childrenOf } from "../../../test/support/server/child-processes.ts";
import { skipUnlessGiven } from "../../../test/support/skip.ts";
import { silentLog } from "../../base/log.ts";
import { EmbedderLost } from "./embedder.ts";
import { createLocalEmbedder } from "./local-embedder.ts";

skipUnlessGiven(hasModels && process.platform === "linux", NO_MODELS)(
  "[SEARCH-3] a process that dies while its model is loaded dies over no text; one that dies while it embeds may",
  async () => {
    using scratch = scratchDir("svc-embedder");
    const modelsDir = join(scratch.path, "models");
    mkdirSync(dirname(join(modelsDir, ENGLISH_MODEL)), { recursive: true });
    symlinkSync(modelDirectory(ENGLISH_MODEL), join(modelsDir, ENGLISH_MODEL));
    const embedder = createLocalEmbedder({
      modelsDir,
      nativeDir: join(scratch.path, "native"),
      wanted: undefined,
      host: undefined,
      startLongWork: () => ({ progress: () => {}, end: () => {} }),
      log: silentLog,
    });
    const child = async (): Promise<number> => {
      for (;;) {
        const [pid] = childrenOf(process.pid, "__embed");
        if (pid !== undefined) return pid;
        await Bun.sleep(0);
      }
    };
    const failureOf = (embedding: Promise<unknown>): Promise<unknown> =>
      embedding.then(
        () => undefined,
        (error) => error,
      );

    const first = failureOf(embedder.embed(["a text that has to wait for the model"], "passage"));
    process.kill(await child(), "SIGKILL");
    expect(await first).toBeInstanceOf(Error);
    expect(await first).not.toBeInstanceOf(EmbedderLost);

    expect((await embedder.embed(["a text"], "passage")).vectors).toHaveLength(1);
    const second = failureOf(embedder.embed(["a long text ".repeat(2_000)], "passage"));
    process.kill(await child(), "SIGKILL");
    expect(await second).toBeInstanceOf(EmbedderLost);
    await embedder.stop();
  },
  60_000,
);
