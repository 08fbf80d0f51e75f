import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { createHostAllowList } from "./host-allow-list.ts";
import { createHostApi, type HostApi } from "./host-api.ts";
import { createHttpFetch } from "./http-fetch.ts";
import { openLlmBudget, type Spending } from "./llm-budget.ts";
import { createLlmChat, type LlmChat } from "./llm-chat.ts";
import { createLocalApi, type LocalApi } from "./local-api.ts";
import { createRedact, type Redact } from "./redact.ts";
import type { RuntimeDeps } from "./runtime-deps.ts";
import { readSecrets } from "./secrets.ts";

/** What programs and the chat can reach outside: the API, the model, listed hosts; with secrets, prices and caps. */
export interface Host {
  readonly api: LocalApi;
  readonly llm: LlmChat;
  readonly redact: Redact;
  /** Returns the host API for a run with this spending limit. */
  hostFor(spending: Spending): HostApi;
  close(): Promise<void>;
}

export async function openHost(
  { accountDir, answer, config, clock, env }: RuntimeDeps,
  agentSpaceId: string,
): Promise<Host> {
  const secrets = readSecrets(config, env);
  const api = createLocalApi(answer);
  const budget = await openLlmBudget({
    priceIn: config["runtime.llm.priceIn"],
    priceOut: config["runtime.llm.priceOut"],
    maxCostPerDay: config["runtime.llm.maxCostPerDay"],
    clock,
    path: join(accountDir, "runtime", "llm-day.json"),
  });
  const llm = createLlmChat({ budget, config: modelOf(config, secrets.llmKey) });
  const http = createHttpFetch({ allow: createHostAllowList(config["runtime.http.allow"]), secret: secrets.named });
  return {
    api,
    llm,
    redact: createRedact(secrets.all),
    hostFor: (spending) =>
      createHostApi({ api, http, agentSpaceId, llm: (input, signal) => llm(input, signal, spending) }),
    close: budget.flush,
  };
}

function modelOf(config: Config, key: string | undefined) {
  return {
    baseUrl: config["runtime.llm.baseUrl"],
    model: config["runtime.llm.model"],
    key,
    priceIn: config["runtime.llm.priceIn"],
    priceOut: config["runtime.llm.priceOut"],
    contextTokens: config["runtime.llm.contextTokens"],
  };
}
