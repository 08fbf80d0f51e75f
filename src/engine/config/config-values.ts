import { isAbsolute, resolve } from "node:path";
import { parseDurationMs } from "../../base/duration.ts";
import type { AccountId } from "../../base/ids.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { type NetworkServers, parseNetworkUrl } from "../../sync/network/network-url.ts";
import { parseLoopbackAddress } from "../listen-address.ts";

/** What the reading of a setting depends on besides its text. */
export interface ValueContext {
  /** Directory that relative paths start from: the configuration file's, or the working directory. */
  readonly baseDir: string;
  readonly homeDir: string;
}

/**
 * Reads one value: from YAML any JSON-like value, from the environment and flags a string. Throws an Error whose message
 * says what it must be.
 */
export type ValueReader<T> = (raw: unknown, context: ValueContext) => T;

export const text: ValueReader<string> = (raw) => {
  if (typeof raw !== "string" || raw === "") throw new Error("must be a non-empty text");
  return raw;
};

/** Reads the id of an account. Whether the account is on this machine is found out when it is opened. */
export const accountId: ValueReader<AccountId> = (raw) => {
  if (typeof raw !== "string" || !parseAccountId(raw))
    throw new Error("must be an account id, as `svc init` prints it: a word that begins with A");
  return raw as AccountId;
};

export const flag: ValueReader<boolean> = (raw) => {
  if (raw === true || raw === "true" || raw === "1") return true;
  if (raw === false || raw === "false" || raw === "0") return false;
  throw new Error("must be true or false");
};

export function integer(min: number, max: number): ValueReader<number> {
  return (raw) => {
    const value = typeof raw === "string" && /^\d+$/.test(raw) ? Number(raw) : raw;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min || value > max) {
      throw new Error(
        max === Number.MAX_SAFE_INTEGER
          ? `must be an integer of at least ${min}`
          : `must be an integer from ${min} to ${max}`,
      );
    }
    return value;
  };
}

export const price: ValueReader<number> = (raw) => {
  const value = typeof raw === "string" && /^\d+(\.\d+)?$/.test(raw) ? Number(raw) : raw;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    throw new Error("must be a number, zero or more");
  return value;
};

/** One or more servers of a network. */
export const networkServers: ValueReader<NetworkServers> = (raw) => {
  const servers = parseNetworkUrl(text(raw, { baseDir: "", homeDir: "" }));
  // The problem begins with the key, and the code that shows the error adds the key itself.
  if ("problem" in servers) throw new Error(servers.problem.replace(/^network\.url /, ""));
  return servers;
};

/** Milliseconds, at least `minMs`. */
export function duration(minMs: number): ValueReader<number> {
  return (raw) => {
    const valueMs = typeof raw === "string" ? parseDurationMs(raw) : undefined;
    if (valueMs === undefined) throw new Error("must be a duration such as 30s, 5m or 24h");
    if (valueMs < minMs || valueMs > 2 ** 31 - 1) throw new Error(`must be a duration between ${minMs}ms and 24d`);
    return valueMs;
  };
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** Bytes. */
export const size: ValueReader<number> = (raw) => {
  const [, amount, unit] = /^(\d+) ?([KMGT]i?B)?$/.exec(String(raw)) ?? [];
  const bytes = amount === undefined ? Number.NaN : Number(amount) * (SIZE_UNITS[unit ?? ""] as number);
  if (!Number.isSafeInteger(bytes)) throw new Error("must be a number of bytes, or a size such as 512MiB or 20GB");
  return bytes;
};

export function choice<const T extends readonly string[]>(values: T): ValueReader<T[number]> {
  return (raw) => {
    if (typeof raw !== "string" || !values.includes(raw)) throw new Error(`must be one of ${values.join(", ")}`);
    return raw;
  };
}

/** An absolute path; `~/` is the home directory. */
export const path: ValueReader<string> = (raw, { baseDir, homeDir }) => {
  const given = text(raw, { baseDir, homeDir });
  if (given.includes("\0")) throw new Error("must be a path");
  if (given === "~" || given.startsWith("~/")) return resolve(homeDir, given.slice(2));
  return isAbsolute(given) ? resolve(given) : resolve(baseDir, given);
};

/** A list in YAML; in the environment the entries are separated by commas. */
export function list<T>(item: ValueReader<T>): ValueReader<readonly T[]> {
  return (raw, context) => {
    const items = typeof raw === "string" ? raw.split(",").map((entry) => entry.trim()) : raw;
    if (!Array.isArray(items)) throw new Error("must be a list");
    return items.filter((entry) => entry !== "").map((entry) => item(entry, context));
  };
}

export const origin: ValueReader<string> = (raw) => {
  const value = text(raw, { baseDir: "/", homeDir: "/" });
  if (value === "*" || value === "null") throw new Error("must name origins; * and null would let any page in");
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(value))
    throw new Error("must be an origin such as http://localhost:3000");
  return value;
};

export const url: ValueReader<string> = (raw) => {
  const value = text(raw, { baseDir: "/", homeDir: "/" });
  if (!URL.canParse(value)) throw new Error("must be a URL");
  return value;
};

export const environmentName: ValueReader<string> = (raw) => {
  const value = text(raw, { baseDir: "/", homeDir: "/" });
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(value))
    throw new Error("must be the name of an environment variable, not the secret itself");
  return value;
};

/** Names with one value each (a map in YAML; one variable each in the environment). */
export function named<T>(item: ValueReader<T>): ValueReader<Readonly<Record<string, T>>> {
  return (raw, context) => {
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) throw new Error("must be a map of names");
    const values: Record<string, T> = Object.create(null);
    for (const [name, value] of Object.entries(raw)) {
      if (!/^[A-Za-z0-9_]{1,64}$/.test(name))
        throw new Error(`must have names of letters, digits and _, not ${JSON.stringify(name)}`);
      values[name] = item(value, context);
    }
    return values;
  };
}

export const loopbackAddress = parseLoopbackAddress;
