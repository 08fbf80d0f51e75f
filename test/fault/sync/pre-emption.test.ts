/** Anybody who knows account ids leaves messages about spaces that are not its own: real processes, a real nats-server. */
import { expect } from "bun:test";
import { encodeOneToOneHeader } from "../../../src/acl/record/space-header.ts";
import { bytesToBase64 } from "../../../src/base/bytes.ts";
import type { AccountId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { parseAccountId } from "../../../src/crypto/account-id.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import type { JsonObject } from "../../support/hostile/wire-types.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import { type Device, startDevice, untilSame, untilStatus } from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";
import { createAccount } from "../../support/worlds/acl-world.ts";
import { sealedInboxMessage } from "../../support/worlds/inbox-message.ts";
import { openStore } from "../../support/worlds/network-replica.ts";

const LONG_MS = 120_000;
const WAIT_MS = 30_000;

const keyOf = (device: Device): Uint8Array => parseAccountId(device.accountId as AccountId)!;
const rowsOf = (device: Device) => device.server.client.get<SpaceInfo[]>("/v1/spaces?status=all");
const junkAdd = (spaceId: string): JsonObject => ({ spaceId, transport: bytesToBase64(randomBytes(32)), name: "junk" });

/** More than a list holds. */
const REQUESTS = 300;
const SENT_AT_ONCE = 50;

/** A stranger with credentials of the network. */
async function openStranger(url: string) {
  const account = createAccount();
  const store = openStore(url);
  await until(() => store.state().phase === "online", "the network", WAIT_MS);
  return {
    say: (to: Device, kind: string, body: JsonObject, from = account) =>
      store.sendToInbox(keyOf(to), sealedInboxMessage(from, keyOf(to), kind, body)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

describeWithNats("messages about spaces that are another's", () => {
  rule(
    "[SYNC-12] no message of a stranger keeps two from their one-to-one space, or anybody from a space it is added to",
    async () => {
      await using nats = await startNats();
      await using one = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      await using stranger = await openStranger(nats.url);
      const space = await createSpace(one.server.client, "Genuine");
      await createObject(one.server.client, space.id, named("for you"));
      const pair = encodeOneToOneHeader(keyOf(one), keyOf(other)).spaceId;
      for (const device of [one, other]) await stranger.say(device, "space.added", junkAdd(pair));
      await stranger.say(other, "space.added", junkAdd(space.id));
      // A third message that is taken says that those before it were.
      await stranger.say(other, "space.one-to-one", { name: "last" });
      await until(async () => (await rowsOf(other)).some(({ name }) => name === "last"), "the last message", WAIT_MS);
      expect((await rowsOf(other)).map(({ name }) => name)).toEqual(["last"]);
      expect((await rowsOf(one)).map(({ id }) => id)).not.toContain(pair);

      await one.server.client.post("/v1/spaces/one-to-one", { otherIdentity: other.accountId }, 201);
      await untilStatus(other, pair, "one_to_one_pending");
      const accepted = await other.server.client.post<SpaceInfo>(`/v1/spaces/${pair}/one-to-one/accept`, {}, 200);
      expect(accepted).toMatchObject({ spaceType: "svc.onetoone", author: one.accountId });
      await createObject(other.server.client, pair, named("hello"));
      await untilSame([one, other], pair, (rows) => rows.includes("hello"), WAIT_MS);

      const accounts = [{ identity: other.accountId, permission: "reader" }];
      await one.server.client.post(`/v1/spaces/${space.id}/acl/add`, { accounts }, 204);
      await untilStatus(other, space.id, "invite_pending");
      const known = (await rowsOf(other)).find(({ id }) => id === space.id);
      expect(known).toMatchObject({ name: "Genuine" });
      await other.server.client.request("POST", `/v1/spaces/${space.id}/invite/accept`);
      const me = () => other.server.client.request("GET", `/v1/spaces/${space.id}/members/me`);
      await until(async () => (await me()).status === 200, "the space", WAIT_MS);
      await untilSame([one, other], space.id, (rows) => rows.includes("for you"), WAIT_MS);
    },
    LONG_MS,
  );

  rule(
    "[SPACE-4] [SPACE-5] hundreds of throwaway requests fill no list for good: a later genuine one is shown",
    async () => {
      await using nats = await startNats();
      await using one = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      await using stranger = await openStranger(nats.url);
      for (let from = 0; from < REQUESTS; from += SENT_AT_ONCE) {
        const sent = Array.from({ length: SENT_AT_ONCE }, (_, index) => [
          stranger.say(other, "space.one-to-one", { name: `throwaway ${from + index}` }, createAccount()),
          stranger.say(other, "space.added", junkAdd(cidFromDigest(randomBytes(32)))),
        ]);
        await Promise.all(sent.flat());
      }
      const shown = async () => (await rowsOf(other)).map(({ name }) => name);
      await until(async () => (await shown()).includes(`throwaway ${REQUESTS - 1}`), "the last of them", WAIT_MS);
      expect((await shown()).length).toBeLessThanOrEqual(256);

      const space = await createSpace(one.server.client, "Genuine");
      const accounts = [{ identity: other.accountId, permission: "reader" }];
      await one.server.client.post(`/v1/spaces/${space.id}/acl/add`, { accounts }, 204);
      const pair = await one.server.client.post<SpaceInfo>(
        "/v1/spaces/one-to-one",
        { otherIdentity: other.accountId },
        201,
      );
      await untilStatus(other, pair.id, "one_to_one_pending");
      await untilStatus(other, space.id, "invite_pending");
    },
    LONG_MS,
  );
});
