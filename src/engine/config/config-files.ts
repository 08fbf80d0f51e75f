import { readFileSync, statSync } from "node:fs";
import { StartRefusal } from "../start-refusal.ts";
import type { Config } from "./config.ts";

/** Settings that name an existing file, and what the text of that file must contain. */
const FILES = {
  "network.tls.ca": { holds: "-----BEGIN CERTIFICATE-----", what: "a certificate in PEM" },
  "network.credsFile": { holds: "-----BEGIN NATS USER JWT-----", what: "the credentials of a NATS user" },
} as const;

/**
 * Refuses (StartRefusal naming the setting and its source) files that are missing, cannot be read or have other content: if this
 * were noticed only when a connection is made, it would look like a network that is down.
 */
export function refuseBadFiles(config: Config): void {
  for (const key of Object.keys(FILES) as (keyof typeof FILES)[]) {
    const path = config[key];
    if (path === undefined) continue;
    const { holds, what } = FILES[key];
    const fault = faultOf(path, holds, what);
    if (fault !== undefined) throw new StartRefusal(`${config.sourceOf(key)}: ${key} names ${path}, which ${fault}`);
  }
}

/** Certificate chains and credentials are far smaller; larger files are not read. */
const MAX_BYTES = 4 << 20;

function faultOf(path: string, holds: string, what: string): string | undefined {
  try {
    const facts = statSync(path);
    if (!facts.isFile()) return "is no file";
    if (facts.size <= MAX_BYTES && readFileSync(path, "utf8").includes(holds)) return undefined;
    return `does not hold ${what}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? "does not exist" : `cannot be read (${code})`;
  }
}
