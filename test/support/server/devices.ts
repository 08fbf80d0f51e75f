/** Devices of one account, or of several: real servers that may find each other. */

import type { JsonObject } from "../hostile/wire-types.ts";
import type { Client, SpaceInfo } from "./client.ts";
import { until } from "./client.ts";
import { createObject, createSpace, setFields } from "./fixtures.ts";
import { type RunningServer, type ServerOptions, startServer } from "./server.ts";

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

export const infoOf = ({ server }: Device, spaceId: string): Promise<SpaceInfo> =>
  server.client.get<SpaceInfo>(`/v1/spaces/${spaceId}`);
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

/**
 * Waits until a device says of itself that a space is synced, by its regular rounds alone. A space that has not come yet
 * is waited for too.
 */
export const untilSynced = (device: Device, spaceId: string, timeoutMs = 60_000): Promise<void> =>
  until(
    async () => {
      const reply = await device.server.client.request("GET", `/v1/spaces/${spaceId}/sync-status`);
      return (reply.json as { state?: string }).state === "synced";
    },
    "synced",
    timeoutMs,
  );

/** Until the status of a space says so; it may do so for a moment alone. */
export const untilState = (device: Device, spaceId: string, state: string): Promise<void> =>
  until(async () => (await statusOf(device, spaceId)).state === state, `${state} at ${device.server.dataDir}`, 40_000);

/** `untilSynced` with a round forced each time, so that what the last one finds is what counts. */
export const forceSynced = (device: Device, spaceId: string, timeoutMs = 60_000): Promise<void> =>
  until(
    async () => {
      const reply = await device.server.client.request("POST", `/v1/spaces/${spaceId}/sync`);
      return reply.status === 204 && (await statusOf(device, spaceId)).state === "synced";
    },
    "synced",
    timeoutMs,
  );

/** The status of a space's row on a device; undefined while there is none. */
export async function rowStatusOf(device: Device, spaceId: string): Promise<string | undefined> {
  const reply = await device.server.client.request("GET", `/v1/spaces/${spaceId}`);
  return (reply.json as { status?: string }).status;
}

export const untilStatus = (device: Device, spaceId: string, status: string, timeoutMs = 45_000): Promise<void> =>
  until(async () => (await rowStatusOf(device, spaceId)) === status, `the row to be ${status}`, timeoutMs);

/** Until a device has a space whose members it can list. */
export const untilHere = (device: Device, spaceId: string): Promise<void> =>
  until(
    async () => (await device.server.client.request("GET", `/v1/spaces/${spaceId}/members`)).status === 200,
    "the space",
    45_000,
  );

/** How many proposals to the ACL log wait on a device. */
export const proposalsAt = async ({ server }: Pick<Device, "server">, spaceId: string): Promise<number> =>
  (await server.client.get<{ proposals: number }>(`/v1/spaces/${spaceId}/debug`)).proposals;

/** Makes an invite and answers its token. By default one by which others ask to join. */
export async function mintInvite(device: Device, spaceId: string, body: object = {}): Promise<string> {
  const path = `/v1/spaces/${spaceId}/invites`;
  return (await device.server.client.post<{ inviteToken: string }>(path, body, 201)).inviteToken;
}

/** Joins a space by an open invite of its owner's. */
export async function joinOpen(owner: Device, joiner: Device, spaceId: string, permission = "writer"): Promise<void> {
  const inviteToken = await mintInvite(owner, spaceId, { mode: "open", permission });
  await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
  await untilStatus(joiner, spaceId, "active");
}

/** Joins so, and waits until the owner's device shows the new member, too. */
export async function joinAndBeSeen(owner: Device, joiner: Device, spaceId: string): Promise<void> {
  await joinOpen(owner, joiner, spaceId);
  const member = `/v1/spaces/${spaceId}/members/${joiner.accountId}`;
  const isSeen = async () => (await owner.server.client.request("GET", member)).status === 200;
  await until(isSeen, "the member at the owner's", 45_000);
}

/** A space of the owner's with an object in it, joined by another account that has the object then. */
export async function shareObject(owner: Device, joiner: Device): Promise<{ id: string; objectId: string }> {
  const { id } = await createSpace(owner.server.client, "shared");
  const objectId = (await createObject(owner.server.client, id)).id;
  await joinOpen(owner, joiner, id);
  await until(async () => (await rowsOf(joiner, id)).includes(objectId), "the object", 45_000);
  return { id, objectId };
}

export interface JoinRequest {
  requestRecordId: string;
  recordId: string;
  identity: string;
  name?: string;
}

/** The first request to join that a device shows, once it shows one. */
export async function untilRequest(device: Device, spaceId: string, timeoutMs = 45_000): Promise<JoinRequest> {
  let found: JoinRequest | undefined;
  const path = `/v1/spaces/${spaceId}/members/requests`;
  const isThere = async () => {
    found = (await device.server.client.get<{ requests: JoinRequest[] }>(path)).requests[0];
    return found !== undefined;
  };
  await until(isThere, "a request to join", timeoutMs);
  return found!;
}

/** Lets somebody in who asked. */
export async function acceptRequest(
  device: Device,
  spaceId: string,
  { requestRecordId }: JoinRequest,
  permission = "writer",
): Promise<void> {
  await device.server.client.post(`/v1/spaces/${spaceId}/acl/accept`, { requestRecordId, permission }, 204);
}

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

/** Lines of a server's log that warn of something, or worse. */
export const warnings = ({ server }: Device): string[] =>
  server
    .stderr()
    .split("\n")
    .filter((line) => /^\d{4}\S+ (WARN|ERROR)/.test(line));
