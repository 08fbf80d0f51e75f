/** Error codes that take a second device or a second account, over HTTP. */
import { describe, expect } from "bun:test";
import { until } from "../../support/client.ts";
import { joinOpen, startDevice } from "../../support/devices.ts";
import { createSpace } from "../../support/fixtures.ts";
import { rule } from "../../support/rule.ts";

const LONG_MS = 90_000;
const WAIT_MS = 30_000;

describe("errors that take two", () => {
  rule(
    "[devices] a device that another one pruned may not write its own row any more: device.pruned",
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
    },
    LONG_MS,
  );

  rule(
    "[processes] of an id that two accounts run needs one named: process.ambiguous",
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
});
