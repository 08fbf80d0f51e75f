import { LOG_FORMATS, LOG_LEVELS } from "../../base/log.ts";
import {
  accountId,
  choice,
  duration,
  environmentName,
  flag,
  integer,
  list,
  loopbackAddress,
  named,
  networkServers,
  origin,
  path,
  price,
  size,
  text,
  url,
  type ValueReader,
} from "./config-values.ts";

/** How a setting is read; `fallback` is its value when no source has it. */
interface Setting<T> {
  readonly read: ValueReader<T>;
  readonly fallback: T;
}

const setting = <T>(read: ValueReader<T>, fallback: T): Setting<T> => ({ read, fallback });
const optional = <T>(read: ValueReader<T>): Setting<T | undefined> => ({ read, fallback: undefined });

const DEFAULT_PORT = 7001;
const DEFAULT_CONTROL_PORT = 7010;

/** Every setting there is (SRV-5), by its path in the configuration file. */
export const SETTINGS = {
  /** Absolute path; the default is made from the home directory. */
  dataDir: optional(path),
  account: optional(accountId),
  "listen.addr": setting(loopbackAddress, { hostname: "127.0.0.1", port: DEFAULT_PORT }),
  "auth.walletPath": optional(path),
  "webUI.enabled": setting(flag, true),
  "http.allowedOrigins": setting(list(origin), ["tauri://localhost"]),
  "log.defaultLevel": setting(choice(LOG_LEVELS), "info"),
  /** Absent: colorized on a terminal, else plaintext. */
  "log.format": optional(choice(LOG_FORMATS)),
  "log.addOutputPaths": setting(list(path), []),
  "index.enabled": setting(flag, true),
  "index.embedder": setting(choice(["auto", "local", "openai", "none"]), "auto"),
  "index.model": optional(text),
  "index.modelHost": optional(url),
  "index.openai.baseUrl": optional(url),
  "index.openai.model": optional(text),
  "index.openai.keyEnv": optional(environmentName),
  /** Milliseconds between sweeps of the file cache; absent: no sweeps. */
  "files.gcInterval": optional(duration(1000)),
  /** Bytes; absent: no limit. */
  "files.cacheLimit": optional(size),
  /** Whether contents of files are fetched when they are asked for, or all of them as soon as somebody has them. */
  "files.keep": setting(choice(["demand", "all"]), "demand"),
  /** Servers of the network, as `parseNetworkUrl` reads them. */
  "network.url": optional(networkServers),
  "network.tls.ca": optional(path),
  "network.credsFile": optional(path),
  "p2p.enabled": setting(flag, true),
  /** 0: a free port. */
  "p2p.port": setting(integer(0, 65_535), 0),
  /** Milliseconds after which everything that is stored of a space is checked again. */
  "storage.checkInterval": setting(duration(100), 7 * 24 * 60 * 60 * 1000),
  /** Milliseconds between head-sync rounds. */
  "sync.interval": setting(duration(100), 30_000),
  "push.url": optional(url),
  "runtime.enabled": setting(flag, true),
  "runtime.addr": setting(loopbackAddress, { hostname: "127.0.0.1", port: DEFAULT_CONTROL_PORT }),
  /** Hard maximum of `fuelPerRun`; absent: none. */
  "runtime.maxFuel": optional(integer(1, Number.MAX_SAFE_INTEGER)),
  "runtime.maxMemoryMiB": setting(integer(1, 4096), 64),
  /** Hosts that programs may call. */
  "runtime.http.allow": setting(list(text), []),
  /** Secret's name → the environment variable that holds it. */
  "runtime.secrets": setting(named(environmentName), {}),
  "runtime.llm.baseUrl": optional(url),
  "runtime.llm.model": optional(text),
  "runtime.llm.keyEnv": optional(environmentName),
  /** USD per million tokens. */
  "runtime.llm.priceIn": optional(price),
  "runtime.llm.priceOut": optional(price),
  /** Tokens that may be sent to the model at once. */
  "runtime.llm.contextTokens": setting(integer(256, 10_000_000), 4096),
  /** USD a day (UTC) that everything on this device may cost together. */
  "runtime.llm.maxCostPerDay": optional(price),
} as const;

export type SettingKey = keyof typeof SETTINGS;
export const SETTING_KEYS = Object.keys(SETTINGS) as SettingKey[];
/** Settings whose values may hold a secret, in place or by mistake: a refusal does not repeat them. */
export const HIDDEN_KEYS: ReadonlySet<SettingKey> = new Set<SettingKey>([
  "network.url",
  "index.openai.keyEnv",
  "runtime.llm.keyEnv",
  "runtime.secrets",
]);
/** The one setting whose children are free names. */
export const NAMED_KEY = "runtime.secrets" satisfies SettingKey;

export type SettingValues = {
  readonly [K in SettingKey]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never;
};

/** `webUI.enabled` → `SVC_WEB_UI_ENABLED`: the path in capitals, camel case split. */
export function environmentNameOf(key: string): string {
  const words = key
    .replace("MiB", "Mib")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(".", "_");
  return `SVC_${words.toUpperCase()}`;
}
