/** Events between devices: over the LAN and over the network, sealed, at most once. */
import { describe, expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import type { JsonObject } from "../../support/server/client.ts";
import { until } from "../../support/server/client.ts";
import { type Device, spacesOf, startDevice, statusOf } from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";
import type { SseStream } from "../../support/server/sse-stream.ts";

const LONG_MS = 90_000;

async function untilShared(first: Device, second: Device): Promise<string> {
  const space = await createSpace(first.server.client);
  await until(
    async () => {
      if (!(await spacesOf(second)).some(({ id }) => id === space.id)) return false;
      const reply = await second.server.client.request("POST", `/v1/spaces/${space.id}/sync`);
      return reply.status === 204 && (await statusOf(second, space.id)).state === "synced";
    },
    "the space on both",
    30_000,
  );
  return space.id;
}

interface Heard {
  type: string;
  data?: { n: number };
}
const heardOn = (stream: SseStream): Heard[] =>
  [...stream.rawText().matchAll(/event: event\ndata: (.*)\n/g)].map((match) => JSON.parse(match[1]!) as Heard);

/** Publishes until one arrives: an event is for whoever listens, and listening takes a moment to spread. */
async function shows(first: Device, second: Device, spaceId: string): Promise<void> {
  const path = `/v1/events/subscribe?scope=space&spaceId=${spaceId}&type=app.*`;
  await using space = await second.server.client.stream("GET", path);
  await using account = await second.server.client.stream("GET", "/v1/events/subscribe?type=ui.*");
  await space.expect("ready");
  await account.expect("ready");
  let sent = 0;
  const publish = (body: JsonObject) =>
    first.server.client.post("/v1/events", { ...body, data: { text: "x".repeat(1000), n: ++sent } });
  const arrived = async (stream: SseStream, body: JsonObject): Promise<Heard> => {
    await until(
      async () => {
        await publish(body);
        return heardOn(stream).length > 0;
      },
      `${body["type"]} on the other device`,
      20_000,
      50,
    );
    return heardOn(stream)[0]!;
  };
  expect(await arrived(space, { type: "app.note", scope: "space", spaceId, target: "t1" })).toMatchObject({
    type: "app.note",
    scope: "space",
    spaceId,
    target: "t1",
    sender: { identity: first.accountId, self: true },
  });
  expect(await arrived(account, { type: "ui.open_object", scope: "account" })).toMatchObject({ scope: "account" });
  await publish({ type: "ui.only_here", scope: "device" });
  await publish({ type: "ui.last", scope: "account" });
  await until(() => heardOn(account).some(({ type }) => type === "ui.last"), "the last", 20_000);
  expect(heardOn(account).some(({ type }) => type === "ui.only_here")).toBe(false);
  const numbers = [...heardOn(space), ...heardOn(account)].map(({ data }) => data!.n);
  expect(new Set(numbers).size).toBe(numbers.length);
}

describe("events between devices on a LAN", () => {
  rule(
    "[EVENT-1] of account and space scope reach the other device, those of device scope do not",
    async () => {
      await using first = await startDevice({ lan: true });
      await using second = await startDevice({ lan: true, mnemonic: first.mnemonic });
      await shows(first, second, await untilShared(first, second));
    },
    LONG_MS,
  );
});

describeWithNats("events between devices on a network", () => {
  rule(
    "[EVENT-1] of account and space scope reach the other device once, also when the LAN brings them too",
    async () => {
      await using nats = await startNats();
      await using first = await startDevice({ network: nats.url });
      await using second = await startDevice({ network: nats.url, mnemonic: first.mnemonic });
      await shows(first, second, await untilShared(first, second));
      await using third = await startDevice({ network: nats.url, lan: true, mnemonic: first.mnemonic });
      await using fourth = await startDevice({ network: nats.url, lan: true, mnemonic: first.mnemonic });
      await shows(third, fourth, await untilShared(third, fourth));
    },
    LONG_MS,
  );
});
