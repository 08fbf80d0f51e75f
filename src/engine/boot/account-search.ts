import { join } from "node:path";
import type { Log } from "../../base/log.ts";
import type { StartLongWork } from "../../domain/process/port.ts";
import type { Embedder } from "../../domain/search/embedder.ts";
import { createLocalEmbedder } from "../../domain/search/local-embedder.ts";
import { createOpenAiEmbedder } from "../../domain/search/openai-embedder.ts";
import { createSearchService, type SearchService } from "../../domain/search/search-service.ts";
import { DEFAULT_HOST } from "../../search/model/model-download.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { Config } from "../config/config.ts";
import { nativeDirectory, probeVectorSupport } from "../vector-support.ts";
import type { BootOptions } from "./boot-engine.ts";
import type { OpenAccount } from "./open-account.ts";
import type { Bus } from "./open-bus.ts";
import type { Stores } from "./open-stores.ts";

/** Opens search over the account's spaces. It follows what is committed in them, and learns which of them leave this device. */
export function openSearch(
  { accountDir, config, log }: BootOptions,
  { stores, opened, bus, events }: { stores: Stores; opened: OpenAccount; bus: Bus; events: SpaceEvents },
): SearchService {
  const { spaces, tech } = opened;
  const search = createSearchService({
    enabled: config["index.enabled"],
    directory: join(accountDir, "index"),
    databaseOf: stores.paths.space,
    open: async (spaceId) => {
      const { id, engine, store } = await spaces.open(spaceId);
      const { rowLog } = store;
      return {
        types: stores.schemaOf(id).view,
        trimLog: (before, limit) => engine.background(() => rowLog.trim(before, limit)),
        logHead: rowLog.head,
      };
    },
    activeIds: spaces.activeIds,
    nativeDir: nativeDirectory(accountDir),
    whyNoVectors: () => {
      const support = probeVectorSupport(accountDir, log);
      return support.loaded ? undefined : support.reason;
    },
    embedder: () => createEmbedder({ accountDir, config, log, startLongWork: bus.startLongWork }),
    startLongWork: bus.startLongWork,
    log,
  });
  events.on("committed", ({ id }, { touched }) => {
    if (id !== tech.space.id) search.committed(id, touched.length);
  });
  events.on("ended", search.ended);
  return search;
}

interface EmbedderDeps {
  readonly accountDir: string;
  readonly config: Config;
  readonly log: Log;
  readonly startLongWork: StartLongWork;
}

/**
 * Creates the embedder that the settings ask for. `auto` uses an endpoint or a hub if one is configured, else a model that is on
 * the disk. It never uses a network that nobody named.
 */
function createEmbedder({ accountDir, config, log, startLongWork }: EmbedderDeps): Embedder | undefined {
  const kind = config["index.embedder"];
  const baseUrl = config["index.openai.baseUrl"];
  const model = config["index.openai.model"];
  if (kind === "none") return undefined;
  if (kind === "openai" || (kind === "auto" && baseUrl !== undefined)) {
    if (baseUrl === undefined || model === undefined) {
      log.warn("the embedder openai needs index.openai.baseUrl and index.openai.model; search goes on by words alone");
      return undefined;
    }
    const keyEnv = config["index.openai.keyEnv"];
    const key = () => (keyEnv === undefined ? undefined : process.env[keyEnv]);
    return createOpenAiEmbedder({ baseUrl, model, key, log });
  }
  return createLocalEmbedder({
    modelsDir: join(accountDir, "models"),
    nativeDir: nativeDirectory(accountDir),
    wanted: config["index.model"],
    host: config["index.modelHost"] ?? (kind === "local" ? DEFAULT_HOST : undefined),
    startLongWork,
    log,
  });
}
