/** The list of processes shows what the account's other devices and other members run, whether any stream is open or not. */
import { describe, expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { type JsonObject, type SpaceInfo, until } from "../../support/server/client.ts";
import { type Device, spacesOf, startDevice } from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

interface Process {
  id: string;
  identity: string;
  self: boolean;
  state: string;
  done?: number;
}

const processesOf = async (device: Device) =>
  (await device.server.client.get<{ processes: Process[] }>("/v1/processes")).processes;

/** Gives signs of life until the others show the process: one sent before they listened is lost. */
async function untilShown(runner: Device, others: readonly Device[], process: JsonObject): Promise<void> {
  await runner.server.client.post("/v1/processes", process);
  const path = `/v1/processes/${process["id"]}/progress`;
  const shown = async () => {
    await runner.server.client.post(path, { done: 1, total: 2 });
    const lists = await Promise.all(others.map(processesOf));
    return lists.every((list) => list.some(({ id, done }) => id === process["id"] && done === 1));
  };
  await until(shown, `${process["id"]} on the others`, WAIT_MS);
}

const hasSpace = async (device: Device, spaceId: string) =>
  (await spacesOf(device)).some(({ id, ownRole }) => id === spaceId && ownRole !== "none");

async function shows(start: (mnemonic?: string) => Promise<Device>): Promise<void> {
  await using owner = await start();
  await using second = await start(owner.mnemonic);
  await using member = await start();
  await untilShown(owner, [second], { id: "backup", kind: "backup", title: "Backing up", scope: "account" });
  expect((await processesOf(second))[0]).toMatchObject({ identity: owner.accountId, self: true, state: "running" });
  // Whichever device of the account says how it goes: the process is the account's.
  await second.server.client.post("/v1/processes/backup/progress", { done: 2, total: 2 });
  await until(async () => (await processesOf(owner))[0]?.done === 2, "the progress at the first device", WAIT_MS);

  const { id } = await createSpace(owner.server.client, "Shared");
  const open = { mode: "open", permission: "reader" };
  const path = `/v1/spaces/${id}/invites`;
  const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(path, open, 201);
  const join = () => member.server.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202);
  await join();
  for (const device of [second, member]) await until(() => hasSpace(device, id), "the space", WAIT_MS);
  const process = { kind: "export", title: "Exporting", scope: "space", spaceId: id };
  await untilShown(owner, [second, member], { ...process, id: "export" });
  const [shown] = await processesOf(member);
  expect(shown).toMatchObject({ id: "export", identity: owner.accountId, self: false });
  await member.server.client.post("/v1/processes/export/cancel", { identity: owner.accountId });

  // Left and joined again, it is listened to again, by the list and by a stream that was open all the time.
  await using stream = await member.server.client.stream("GET", `/v1/events/subscribe?spaceId=${id}`);
  await stream.expect("ready");
  await member.server.client.post(`/v1/spaces/${id}/acl/self-remove`, {}, 204);
  const leaver = async () =>
    (await owner.server.client.get<{ status: string }>(`/v1/spaces/${id}/members/${member.accountId}`)).status;
  await until(async () => (await leaver()) === "removed", "the leaver to be gone", WAIT_MS);
  await join();
  await until(() => hasSpace(member, id), "the space again", WAIT_MS);
  await untilShown(owner, [member], { ...process, id: "second" });
  await until(() => stream.rawText().includes('"target":"second"'), "the event on the stream", WAIT_MS);
}

describe("processes over the LAN", () => {
  rule(
    "[PROC-1] of other devices and members are in the list without any stream, also after leaving and coming back",
    () => shows((mnemonic) => startDevice({ lan: true, ...(mnemonic === undefined ? {} : { mnemonic }) })),
    LONG_MS,
  );
});

describeWithNats("processes over the network", () => {
  rule(
    "[PROC-1] of other devices and members are in the list without any stream, also after leaving and coming back",
    async () => {
      await using nats = await startNats();
      const network = nats.url;
      await shows((mnemonic) => startDevice({ network, ...(mnemonic === undefined ? {} : { mnemonic }) }));
    },
    LONG_MS,
  );
});
