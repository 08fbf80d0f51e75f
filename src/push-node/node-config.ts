import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { LOG_LEVELS } from "../base/log.ts";
import { oneOf, strict } from "../protocol/schema.ts";

const text = () => Type.String({ minLength: 1 });
const webUrl = () => Type.String({ pattern: "^https?://[^\\s/]+" });
const count = () => Type.Optional(Type.Integer({ minimum: 1 }));

/** The limits of a node; each has a default. */
const Limits = strict({
  requestsPerSecond: count(),
  requestBurst: count(),
  addressRequestsPerSecond: count(),
  addressRequestBurst: count(),
  newAccountsPerHour: count(),
  devicesPerAccount: count(),
  topicsPerAccount: count(),
  recipientsPerMessage: count(),
  recipientsPerHour: count(),
  pendingDeliveries: count(),
});
export type NodeLimits = Required<Static<typeof Limits>>;

const DEFAULT_LIMITS: NodeLimits = {
  requestsPerSecond: 10,
  requestBurst: 100,
  addressRequestsPerSecond: 50,
  addressRequestBurst: 500,
  newAccountsPerHour: 100,
  devicesPerAccount: 16,
  topicsPerAccount: 10_000,
  recipientsPerMessage: 10_000,
  recipientsPerHour: 100_000,
  pendingDeliveries: 1_000_000,
};

const ConfigFile = strict({
  listen: strict({
    addr: Type.String({ pattern: "^(\\[[0-9a-fA-F:]+\\]|[^\\s:]+):[0-9]{1,5}$" }),
    tls: Type.Optional(strict({ certFile: text(), keyFile: text() })),
  }),
  url: Type.Optional(webUrl()),
  behindProxy: Type.Optional(Type.Boolean()),
  log: Type.Optional(strict({ level: Type.Optional(oneOf(LOG_LEVELS)) })),
  state: strict({
    file: Type.Optional(text()),
    nats: Type.Optional(
      strict({
        url: text(),
        bucket: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9_-]+$" })),
        credsFile: Type.Optional(text()),
      }),
    ),
  }),
  fcm: Type.Optional(strict({ serviceAccountFile: text(), baseUrl: Type.Optional(webUrl()) })),
  apns: Type.Optional(
    strict({
      keyFile: text(),
      keyId: text(),
      teamId: text(),
      topic: text(),
      productionUrl: Type.Optional(webUrl()),
      sandboxUrl: Type.Optional(webUrl()),
    }),
  ),
  upstream: Type.Optional(strict({ url: webUrl() })),
  downstreams: Type.Optional(Type.Array(text())),
  limits: Type.Optional(Limits),
});

export type NodeConfig = Omit<Static<typeof ConfigFile>, "limits"> & { readonly limits: NodeLimits };

/** A configuration with which no node can start; the message is for people. */
export class NodeConfigError extends Error {}

/** Reads a node's configuration file. Paths in it are relative to its folder. Errors: NodeConfigError. */
export async function readNodeConfig(file: string): Promise<NodeConfig> {
  const raw = await readText(file, "the configuration");
  const yaml = await import("yaml");
  let value: unknown;
  try {
    value = yaml.parse(raw, { maxAliasCount: 10 });
  } catch (error) {
    throw new NodeConfigError(`${file}: ${(error as Error).message}`);
  }
  const checked = check(ConfigFile, value, file);
  if ((checked.state.file === undefined) === (checked.state.nats === undefined))
    throw new NodeConfigError(`${file}: state has either file or nats`);
  const base = dirname(resolve(file));
  return withAbsolutePaths({ ...checked, limits: { ...DEFAULT_LIMITS, ...checked.limits } }, (path) =>
    resolve(base, path),
  );
}

function withAbsolutePaths(config: NodeConfig, at: (path: string) => string): NodeConfig {
  const { listen, state, fcm, apns } = config;
  const { tls } = listen;
  const { nats } = state;
  return {
    ...config,
    listen: { ...listen, ...(tls ? { tls: { certFile: at(tls.certFile), keyFile: at(tls.keyFile) } } : {}) },
    state: {
      ...(state.file === undefined ? {} : { file: at(state.file) }),
      ...(nats ? { nats: { ...nats, ...(nats.credsFile ? { credsFile: at(nats.credsFile) } : {}) } } : {}),
    },
    ...(fcm ? { fcm: { ...fcm, serviceAccountFile: at(fcm.serviceAccountFile) } } : {}),
    ...(apns ? { apns: { ...apns, keyFile: at(apns.keyFile) } } : {}),
  };
}

/** Reads a file that the configuration names. Errors: NodeConfigError. */
export async function readText(file: string, what: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new NodeConfigError(`${what} cannot be read: ${(error as Error).message}`);
  }
}

/** Returns a value that matches a schema; else the error names the first place that does not. Errors: NodeConfigError. */
function check<T extends TSchema>(schema: T, value: unknown, file: string): Static<T> {
  if (Value.Check(schema, value)) return value;
  const fault = Value.Errors(schema, value).First();
  const path = fault?.path.slice(1).replaceAll("/", ".") || "the file";
  throw new NodeConfigError(`${file}: ${path}: ${fault?.message ?? "is not what a push node can be started with"}`);
}
