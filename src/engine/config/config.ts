import { homedir } from "node:os";
import { dirname, join } from "node:path";
import type { ListenAddress } from "../listen-address.ts";
import { StartRefusal } from "../start-refusal.ts";
import { type FileEntry, readConfigFile } from "./config-file.ts";
import {
  environmentNameOf,
  HIDDEN_KEYS,
  NAMED_KEY,
  SETTING_KEYS,
  SETTINGS,
  type SettingKey,
  type SettingValues,
} from "./config-keys.ts";
import type { ValueContext, ValueReader } from "./config-values.ts";

/** The settings of a run, read by key: `config["listen.addr"].port`. */
export interface Config extends SettingValues {
  readonly dataDir: string;
  /** Settings that some source gave; the rest have their defaults. */
  readonly given: ReadonlySet<SettingKey>;
  /** Where a setting's value comes from: `<file>:<line>`, a variable's name or a flag. */
  sourceOf(key: SettingKey): string;
  /** The configuration file that was read, if any. */
  readonly file: string | undefined;
  /** Opens an encrypted wallet (`SVC_WALLET_PASSKEY`, `--passkey-stdin`). Never logged. */
  readonly passkey: string | undefined;
  /** Names of `SVC_…` variables that mean nothing here; the server warns of them. */
  readonly unknownVariables: readonly string[];
}

/** The flags of `svc run` and `svc init` that are settings, by their names without `--`. */
export interface ConfigFlags {
  readonly config?: string | undefined;
  readonly "data-dir"?: string | undefined;
  readonly account?: string | undefined;
  readonly addr?: string | undefined;
  readonly wallet?: string | undefined;
  readonly "log-level"?: string | undefined;
}

export interface ConfigSources {
  readonly flags?: ConfigFlags;
  /** The process's environment unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** From `--passkey-stdin`; wins over the environment. */
  readonly passkey?: string | undefined;
  readonly cwd?: string;
  readonly homeDir?: string;
}

/** A value as some source gave it. */
interface Given extends FileEntry {
  readonly context: ValueContext;
}

const SETTING_BY_FLAG = {
  "data-dir": "dataDir",
  account: "account",
  addr: "listen.addr",
  wallet: "auth.walletPath",
  "log-level": "log.defaultLevel",
} as const satisfies Partial<Record<keyof ConfigFlags, SettingKey>>;

/** Variables with names of their own, beside those made from the settings' paths. The first given wins. */
const NAMED_VARIABLES: Partial<Record<SettingKey, string>> = { "log.defaultLevel": "SVC_LOG_LEVEL" };
const PASSKEY_VARIABLE = "SVC_WALLET_PASSKEY";
/** Read elsewhere: named crash points for the tests. */
const OTHER_VARIABLES = ["SVC_CRASH_AT"];

/**
 * Reads the configuration: a YAML file, overridden by `SVC_…` variables, overridden by flags. Changes nothing. Refuses
 * (StartRefusal naming the setting and its source) what it does not know or understand.
 */
export async function loadConfig(sources: ConfigSources = {}): Promise<Config> {
  const env = sources.env ?? process.env;
  const homeDir = sources.homeDir ?? env["HOME"] ?? homedir();
  const atCwd: ValueContext = { baseDir: sources.cwd ?? process.cwd(), homeDir };
  const flags = givenByFlags(sources.flags ?? {}, atCwd);
  const variables = givenByEnvironment(env, atCwd);
  const early = flags.get("dataDir") ?? variables.get("dataDir");
  const file = await findConfigFile(
    sources.flags?.config,
    env,
    atCwd,
    early ? readGiven("dataDir", early) : join(homeDir, ".svc"),
  );

  // Lowest precedence first. A bad value is refused even where a stronger source overrides it, because it would cause a fault as
  // soon as the override is removed.
  const given = new Map<SettingKey, Given>();
  const read = new Map<SettingKey, unknown>();
  for (const source of [file?.given ?? new Map<SettingKey, Given>(), variables, flags]) {
    for (const [key, value] of source) {
      read.set(key, readGiven(key, value));
      given.set(key, value);
    }
  }
  const values = Object.fromEntries(
    SETTING_KEYS.map((key) => [key, read.has(key) ? read.get(key) : SETTINGS[key].fallback]),
  ) as unknown as SettingValues;
  return {
    ...values,
    dataDir: values.dataDir ?? join(homeDir, ".svc"),
    given: new Set(given.keys()),
    sourceOf: (key) => given.get(key)?.source ?? "the defaults",
    file: file?.path,
    passkey: sources.passkey ?? nonEmpty(env[PASSKEY_VARIABLE]),
    unknownVariables: unknownVariables(env),
  };
}

/** The listeners that a server has, by the settings that say where. */
/**
 * Where this configuration's server listens, for those who call it: the same places and precedence, but only this
 * setting is read. Undefined where nothing says so and the default holds. Refuses like `loadConfig`.
 */
export async function readListenAddress(
  sources: Omit<ConfigSources, "flags" | "passkey"> = {},
): Promise<{ readonly address: ListenAddress; readonly source: string } | undefined> {
  const env = sources.env ?? process.env;
  const homeDir = sources.homeDir ?? env["HOME"] ?? homedir();
  const atCwd: ValueContext = { baseDir: sources.cwd ?? process.cwd(), homeDir };
  const variables = givenByEnvironment(env, atCwd);
  const dataDir = variables.get("dataDir");
  const given =
    variables.get("listen.addr") ??
    (
      await findConfigFile(undefined, env, atCwd, dataDir ? readGiven("dataDir", dataDir) : join(homeDir, ".svc"))
    )?.given.get("listen.addr");
  return given && { address: readGiven("listen.addr", given), source: given.source };
}

function givenByFlags(flags: ConfigFlags, context: ValueContext): Map<SettingKey, Given> {
  const given = new Map<SettingKey, Given>();
  for (const [name, key] of Object.entries(SETTING_BY_FLAG)) {
    const raw = flags[name as keyof ConfigFlags];
    if (raw !== undefined) given.set(key, { raw, source: `--${name}`, context });
  }
  return given;
}

function givenByEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  context: ValueContext,
): Map<SettingKey, Given> {
  const given = new Map<SettingKey, Given>();
  for (const key of SETTING_KEYS) {
    for (const name of [NAMED_VARIABLES[key], environmentNameOf(key)]) {
      const raw = name === undefined ? undefined : nonEmpty(env[name]);
      if (raw === undefined) continue;
      given.set(key, { raw, source: name as string, context });
      break;
    }
  }
  const prefix = `${environmentNameOf(NAMED_KEY)}_`;
  const secrets = Object.keys(env).filter((name) => name.startsWith(prefix) && nonEmpty(env[name]) !== undefined);
  if (secrets.length > 0) {
    const raw = Object.fromEntries(secrets.map((name) => [name.slice(prefix.length).toLowerCase(), env[name]]));
    given.set(NAMED_KEY, { raw, source: secrets.join(", "), context });
  }
  return given;
}

function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([
    ...SETTING_KEYS.map(environmentNameOf),
    ...Object.values(NAMED_VARIABLES),
    PASSKEY_VARIABLE,
    ...OTHER_VARIABLES,
  ]);
  const prefix = `${environmentNameOf(NAMED_KEY)}_`;
  return Object.keys(env).filter((name) => name.startsWith("SVC_") && !known.has(name) && !name.startsWith(prefix));
}

/** Returns the file named by `--config`, which must exist, or the first one found in the usual places. Files are never merged. */
async function findConfigFile(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  context: ValueContext,
  dataDir: string,
): Promise<{ path: string; given: Map<SettingKey, Given> } | undefined> {
  if (named !== undefined) {
    const path = SETTINGS.dataDir.read(named, context) as string;
    const entries = await readConfigFile(path);
    if (!entries) throw new StartRefusal(`--config names ${path}, which does not exist`);
    return { path, given: withContext(path, entries, context) };
  }
  const xdg = nonEmpty(env["XDG_CONFIG_HOME"]);
  const directories = [...(xdg ? [join(xdg, "svc")] : []), join(context.homeDir, ".config", "svc"), dataDir];
  for (const directory of directories) {
    const path = join(directory, "config.yaml");
    const entries = await readConfigFile(path);
    if (entries) return { path, given: withContext(path, entries, context) };
  }
  return undefined;
}

function withContext(path: string, entries: Map<string, FileEntry>, { homeDir }: ValueContext): Map<SettingKey, Given> {
  const context: ValueContext = { baseDir: dirname(path), homeDir };
  return new Map([...entries].map(([key, entry]) => [key as SettingKey, { ...entry, context }]));
}

function readGiven<K extends SettingKey>(key: K, { raw, source, context }: Given): NonNullable<SettingValues[K]> {
  const read = SETTINGS[key].read as ValueReader<unknown>;
  try {
    return read(raw, context) as NonNullable<SettingValues[K]>;
  } catch (error) {
    const shown = HIDDEN_KEYS.has(key) ? "" : `; it is ${JSON.stringify(raw)}`;
    throw new StartRefusal(`${source}: ${key} ${(error as Error).message}${shown}`);
  }
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
