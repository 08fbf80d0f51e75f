/** Processes that others run are shown by GET /v1/processes although no stream listens here. */
import { describe, expect } from "bun:test";
import type { JsonObject } from "../../support/client.ts";
import { until } from "../../support/client.ts";
import { type Device, type DeviceOptions, spacesOf, startDevice } from "../../support/devices.ts";
import { createSpace } from "../../support/fixtures.ts";
import { describeWithNats, startNats } from "../../support/nats.ts";
import { rule } from "../../support/rule.ts";

const LONG_MS = 90_000;
const WAIT_MS = 30_000;

const processesOf = async ({ server }: Device): Promise<JsonObject[]> =>
  (await server.client.get<{ processes: JsonObject[] }>("/v1/processes")).processes;

/** A process of one device, as another shows it. Signs of life follow until it does: nothing that was missed is sent again. */
async function shownOn(other: Device, runner: Device, process: JsonObject): Promise<JsonObject> {
  await runner.server.client.post("/v1/processes", process);
  let shown: JsonObject | undefined;
  await until(
    async () => {
      await runner.server.client.post(`/v1/processes/${process["id"]}/progress`, { done: 1, total: 2 });
      shown = (await processesOf(other)).find(({ id }) => id === process["id"]);
      return shown !== undefined;
    },
    `${process["id"]} on the other device`,
    WAIT_MS,
  );
  return shown!;
}

async function untilJoined(owner: Device, member: Device): Promise<string> {
  const { id } = await createSpace(owner.server.client, "Shared");
  const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(
    `/v1/spaces/${id}/invites`,
    { mode: "open", permission: "writer" },
    201,
  );
  await member.server.client.post("/v1/spaces/join", { inviteToken }, 202);
  await until(async () => (await spacesOf(member)).some(({ status }) => status === "active"), "the join", WAIT_MS);
  return id;
}

async function heard(options: DeviceOptions): Promise<void> {
  await using laptop = await startDevice(options);
  await using phone = await startDevice({ ...options, mnemonic: laptop.mnemonic });
  const exporting = { id: "export", kind: "export", title: "Exporting", scope: "account" };
  expect(await shownOn(phone, laptop, exporting)).toMatchObject({
    ...exporting,
    identity: laptop.accountId,
    self: true,
    state: "running",
    done: 1,
    total: 2,
  });

  await using friend = await startDevice(options);
  const spaceId = await untilJoined(laptop, friend);
  const reading = { id: "import", kind: "import", title: "Importing", scope: "space", spaceId };
  expect(await shownOn(friend, laptop, reading)).toMatchObject({ ...reading, identity: laptop.accountId, self: false });
  expect((await processesOf(friend)).some(({ id }) => id === "export")).toBe(false);
  const back = { id: "answer", kind: "import", title: "Answering", scope: "space", spaceId };
  expect(await shownOn(laptop, friend, back)).toMatchObject({ ...back, identity: friend.accountId, self: false });

  await laptop.server.client.post("/v1/processes/import/finish", { status: "done" });
  await until(
    async () => (await processesOf(friend)).some(({ id, state }) => id === "import" && state === "done"),
    "the end of it",
    WAIT_MS,
  );
}

describe("processes of others on a LAN", () => {
  rule(
    "[processes] of another device and of another member are listed without a stream that listens",
    () => heard({ lan: true }),
    LONG_MS,
  );
});

describeWithNats("processes of others on a network", () => {
  rule(
    "[processes] of another device and of another member are listed without a stream that listens",
    async () => {
      await using nats = await startNats();
      await heard({ network: nats.url });
    },
    LONG_MS,
  );
});
