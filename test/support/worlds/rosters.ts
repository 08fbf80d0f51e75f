/** The members of a space as a device tells them, in one text that can be compared. */

import { until } from "../server/client.ts";
import type { Device } from "../server/devices.ts";
import { createAccount } from "./acl-world.ts";

interface Member {
  identity: string;
  permission: string;
  status: string;
}

const textOf = ({ members }: { members: readonly Member[] }): string =>
  JSON.stringify(members.map(({ identity, permission, status }) => [identity, permission, status]).sort());

export const rosterOf = async (device: Device, spaceId: string): Promise<string> =>
  textOf(await device.server.client.get(`/v1/spaces/${spaceId}/members`));

export const rosterHas =
  (...parts: string[]) =>
  (roster: string): boolean =>
    parts.every((part) => roster.includes(part));

const WAIT_MS = 45_000;

/** The roster, or that a device is still joining. */
async function rosterOrNotYet(device: Device, spaceId: string): Promise<string> {
  const { status, text } = await device.server.client.request("GET", `/v1/spaces/${spaceId}/members`);
  if (status === 200) return textOf(JSON.parse(text) as { members: Member[] });
  return text.includes('"space.not_accepted"') ? text : rosterOf(device, spaceId);
}

/** Waits until the devices show one roster, and it is as asked. */
export async function untilOneRoster(
  devices: readonly Device[],
  spaceId: string,
  holds: (roster: string) => boolean,
): Promise<void> {
  let rosters: string[] = [];
  const same = async () => {
    rosters = await Promise.all(devices.map((device) => rosterOrNotYet(device, spaceId)));
    return rosters.every((roster) => roster === rosters[0]) && holds(rosters[0]!);
  };
  await until(same, "one roster", WAIT_MS).catch((error: Error) => {
    throw new Error(`${error.message}\n${rosters.join("\n\n")}`);
  });
}

/** Adds accounts to a space directly. */
export const addMembers = (device: Device, spaceId: string, identities: readonly string[], permission = "reader") =>
  device.server.client.post(
    `/v1/spaces/${spaceId}/acl/add`,
    { accounts: identities.map((identity) => ({ identity, permission })) },
    204,
  );

export const removeMembers = (device: Device, spaceId: string, identities: readonly string[]) =>
  device.server.client.post(`/v1/spaces/${spaceId}/acl/remove`, { identities }, 204);

/** Ids of accounts that nobody has. */
export const strangers = (count: number): string[] => Array.from({ length: count }, () => createAccount().id);
