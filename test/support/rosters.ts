/** The members of a space as a device tells them, in one text that can be compared. */
import { until } from "./client.ts";
import type { Device } from "./devices.ts";

interface Member {
  identity: string;
  permission: string;
  status: string;
}

export const rosterOf = async (device: Device, spaceId: string): Promise<string> => {
  const { members } = await device.server.client.get<{ members: Member[] }>(`/v1/spaces/${spaceId}/members`);
  return JSON.stringify(members.map(({ identity, permission, status }) => [identity, permission, status]).sort());
};

export const rosterHas =
  (...parts: string[]) =>
  (roster: string): boolean =>
    parts.every((part) => roster.includes(part));

const WAIT_MS = 45_000;

/** Waits until the devices show one roster, and it is as asked. */
export async function untilOneRoster(
  devices: readonly Device[],
  spaceId: string,
  holds: (roster: string) => boolean,
): Promise<void> {
  let rosters: string[] = [];
  const same = async () => {
    rosters = await Promise.all(devices.map((device) => rosterOf(device, spaceId)));
    return rosters.every((roster) => roster === rosters[0]) && holds(rosters[0]!);
  };
  await until(same, "one roster", WAIT_MS).catch((error: Error) => {
    throw new Error(`${error.message}\n${rosters.join("\n\n")}`);
  });
}
