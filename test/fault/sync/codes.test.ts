/** Error codes that take a second device or a second account, over HTTP. */
import { describe, expect } from "bun:test";
import { type FakeDevice, startFakeDevice } from "../../support/hostile/fake-device.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { joinOpen, startDevice, untilSame, untilStatus } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { knownAccount } from "../../support/worlds/known-account.ts";

const LONG_MS = 90_000;
const WAIT_MS = 30_000;

describe("errors that take two", () => {
  rule(
    "[DEV-1] a device that another one pruned may neither write its own row nor claim: device.pruned",
    async () => {
      await using first = await startDevice({ lan: true });
      await using second = await startDevice({ lan: true, mnemonic: first.mnemonic });
      const { peerId } = await second.server.client.get<{ peerId: string }>("/v1/account");
      const path = `/v1/devices/${peerId}`;
      await until(
        async () => (await first.server.client.request("DELETE", path)).status === 204,
        "the second device's row at the first",
        WAIT_MS,
      );
      const put = () => second.server.client.request("PUT", "/v1/devices/me", { body: { name: "back" } });
      await until(async () => (await put()).status === 409, "the tombstone at the second", WAIT_MS);
      const error = await second.server.client.fails("PUT", "/v1/devices/me", { name: "back" }, 409, "device.pruned");
      expect(error.details).toEqual({ peerId });
      const claim = { app: "agent" };
      await second.server.client.fails("POST", "/v1/devices/activate", claim, 409, "device.pruned");
    },
    LONG_MS,
  );

  rule(
    "[PROC-1] of an id that two accounts run needs one named: process.ambiguous",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using other = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Shared");
      await joinOpen(owner, other, space.id);
      const listening = `/v1/events/subscribe?scope=space&spaceId=${space.id}&type=process.*`;
      await using stream = await owner.server.client.stream("GET", listening);
      await stream.expect("ready");
      const process = { id: "export", kind: "export", title: "Exporting", scope: "space", spaceId: space.id };
      for (const { server } of [owner, other]) await server.client.post("/v1/processes", process);
      const cancel = () => owner.server.client.request("POST", "/v1/processes/export/cancel", { body: {} });
      await until(
        async () => {
          // An event that came before the other listened is lost: a sign of life follows.
          await other.server.client.post("/v1/processes/export/progress", { done: 1, total: 2 });
          return (await cancel()).status === 409;
        },
        "the other's process",
        WAIT_MS,
      );
      const path = "/v1/processes/export/cancel";
      const error = await owner.server.client.fails("POST", path, {}, 409, "process.ambiguous");
      const { identities } = error.details as { identities: string[] };
      expect(identities.toSorted()).toEqual([owner.accountId, other.accountId].toSorted());
      await owner.server.client.post(path, { identity: other.accountId });
    },
    LONG_MS,
  );

  rule(
    "[SPACE-9] [EVENT-1] known from another device, and neither rights nor keys here yet: events.no_read_key, space.not_joined; then not",
    async () => {
      const account = await knownAccount();
      using ownerRoot = scratchDir("svc-owner");
      await using stack = new AsyncDisposableStack();
      const owner = stack.use(await startDevice({ lan: true, dataDir: ownerRoot.path }));
      const { id } = await createSpace(owner.server.client);
      const base = `/v1/spaces/${id}`;
      const object = await createObject(owner.server.client, id);
      // Keeps what the account's own space holds, and nothing of any other.
      let fake: FakeDevice;
      {
        await using first = await startDevice({ lan: true, mnemonic: account.mnemonic });
        await joinOpen(owner, first, id);
        await owner.server.stop();
        const { techSpaceId } = await first.server.client.get<{ techSpaceId: string }>("/v1/account");
        fake = stack.use(await startFakeDevice(account, techSpaceId));
        let held = 0;
        const isWhole = async () => {
          held = fake.held.size;
          await fake.fetch();
          return held > 0 && fake.held.size === held;
        };
        await until(isWhole, "the account's own space at the other device", WAIT_MS);
        await first.server.stop();
      }
      const second = stack.use(await startDevice({ lan: true, mnemonic: account.mnemonic }));
      const { client } = second.server;
      await untilStatus(second, id, "active");
      const event = { type: "app.note", scope: "space", spaceId: id };
      const process = { id: "export", kind: "export", title: "Exporting", scope: "space", spaceId: id };
      const calls = [
        ["POST", "/v1/events", event, "events.no_read_key"],
        ["POST", "/v1/processes", process, "events.no_read_key"],
        ["GET", `${base}/objects/${object.id}/history`, undefined, "space.not_joined"],
        ["POST", `${base}/acl/self-remove`, undefined, "space.not_joined"],
      ] as const;
      for (const [method, path, body, code] of calls) {
        const error = await client.fails(method, path, body, 409, code);
        expect([path, error.details]).toEqual([path, { spaceId: id }]);
      }
      const again = stack.use(await startDevice({ lan: true, dataDir: ownerRoot.path }));
      await untilSame([again, second], id, (rows) => rows.includes(object.id), WAIT_MS);
      for (const [method, path, body] of calls) {
        const reply = await client.request(method, path, body === undefined ? {} : { body });
        expect([path, reply.status < 300]).toEqual([path, true]);
      }
    },
    LONG_MS,
  );
});
