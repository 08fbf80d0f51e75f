import type { Config } from "../config/config.ts";

export interface RuntimeSecrets {
  /** A secret by its name in the configuration; undefined when it is not named there or its variable is empty. */
  named(name: string): string | undefined;
  readonly llmKey: string | undefined;
  /** Every value, to be taken out of what programs and traces hold. */
  readonly all: readonly string[];
}

/** Reads the secrets that the configuration names, once: a secret is only ever in the environment. */
export function readSecrets(config: Config, env: Readonly<Record<string, string | undefined>>): RuntimeSecrets {
  const byName = new Map<string, string>();
  for (const [name, variable] of Object.entries(config["runtime.secrets"])) {
    const value = env[variable];
    if (value) byName.set(name, value);
  }
  const keyEnv = config["runtime.llm.keyEnv"];
  const llmKey = keyEnv === undefined ? undefined : env[keyEnv] || undefined;
  return {
    named: (name) => byName.get(name),
    llmKey,
    all: [...byName.values(), ...(llmKey === undefined ? [] : [llmKey])],
  };
}
