/** Devices of one account, or of several: real servers that may find each other. */
import type { Client, SpaceInfo } from "./client.ts";
import { until } from "./client.ts";
import { setFields } from "./fixtures.ts";
import { type RunningServer, type ServerOptions, startServer } from "./server.ts";
import type { JsonObject } from "./wire-types.ts";

export interface DeviceOptions extends ServerOptions {
  /** The account's phrase; a new account without it. */
  mnemonic?: string;
  /** Whether it joins the LAN. */
  lan?: boolean;
  /** `network.url`. */
  network?: string;
  /** Called again and again while a new account's boot pass runs. */
  whileBooting?: (client: Client) => Promise<void>;
}

export interface Device extends AsyncDisposable {
  readonly server: RunningServer;
  readonly mnemonic: string;
  readonly accountId: string;
}

/** A boot pass that gets everything back may take its time. */
const BOOT_MS = 60_000;

/** Starts a server with an account. Its rounds run often, so that tests need not wait for the regular interval. */
export async function startDevice(options: DeviceOptions = {}): Promise<Device> {
  const { mnemonic, lan, network, env, whileBooting, ...rest } = options;
  const server = await startServer({
    ...rest,
    account: false,
    env: {
      SVC_SYNC_INTERVAL: "2s",
      ...(lan ? { SVC_P2P_ENABLED: "true" } : {}),
      ...(network === undefined ? {} : { SVC_NETWORK_URL: network }),
      ...env,
    },
  });
  const state = await server.client.get<{ authorized: boolean; accountId?: string }>("/v1/auth");
  if (state.authorized) {
    await server.client.untilBootstrapped(BOOT_MS);
    return { server, mnemonic: mnemonic ?? "", accountId: state.accountId ?? "", ...disposal(server) };
  }
  const made = await server.client.post<{ accountId: string; mnemonic?: string }>(
    "/v1/auth",
    mnemonic === undefined ? {} : { mnemonic },
  );
  if (whileBooting) await untilBooted(server.client, whileBooting);
  await server.client.untilBootstrapped(BOOT_MS);
  return { server, mnemonic: made.mnemonic ?? mnemonic ?? "", accountId: made.accountId, ...disposal(server) };
}

async function untilBooted(client: Client, meanwhile: (client: Client) => Promise<void>): Promise<void> {
  const booting = async () => {
    await meanwhile(client);
    return !(await client.get<{ bootstrapping: boolean }>("/v1/health")).bootstrapping;
  };
  await until(booting, "the boot pass to end", BOOT_MS);
}

const disposal = (server: RunningServer) => ({ [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() });

export const spacesOf = (device: Device): Promise<SpaceInfo[]> => device.server.client.get<SpaceInfo[]>("/v1/spaces");

export interface SyncStatus {
  spaceId: string;
  state: string;
  synced: number;
  total: number;
  networkPeers: number;
  localPeers: number;
  p2p: string;
  lastSyncedAt: string | null;
}
export const statusOf = (device: Device, spaceId: string): Promise<SyncStatus> =>
  device.server.client.get<SyncStatus>(`/v1/spaces/${spaceId}/sync-status`);

/** Sets fields of an object's own row. */
export async function setName(device: Device, spaceId: string, objectId: string, name: string): Promise<void> {
  await device.server.client.post(`/v1/spaces/${spaceId}/modify`, {
    objectId,
    dataset: "objects",
    records: [setFields(objectId, { "svc.name": name }, false)],
  });
}

/** Every row of every object of a space, as text, without what is a device's own. */
export async function rowsOf(device: Device, spaceId: string): Promise<string> {
  const { records } = await device.server.client.post<{ records: JsonObject[] }>(
    `/v1/spaces/${spaceId}/objects/query`,
    { sort: ["id"] },
    200,
  );
  return JSON.stringify(records);
}

/** Waits until the devices show the same rows of a space; what they showed last is in the failure. */
export async function untilSame(
  devices: readonly Device[],
  spaceId: string,
  holds: (rows: string) => boolean = () => true,
  timeoutMs = 20_000,
): Promise<void> {
  let rows: string[] = [];
  try {
    await until(
      async () => {
        rows = await Promise.all(devices.map((device) => rowsOf(device, spaceId)));
        return rows.every((text) => text === rows[0]) && holds(rows[0]!);
      },
      "the same rows everywhere",
      timeoutMs,
    );
  } catch (error) {
    throw new Error(
      `${error instanceof Error ? error.message : error}\n${rows.map((text) => text.slice(0, 4000)).join("\n\n")}`,
    );
  }
}
