/**
 * Nobody reads what they should not: the operator of the network and whoever hears the line, a stranger with an account on
 * the same network, a member that was removed, a guest whose key was revoked. Real servers, a real nats-server.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { cpSync } from "node:fs";
import type { NatsConnection } from "@nats-io/transport-node";
import { TECH_SPACE_NAME } from "../../../src/account/own-space/tech-datasets.ts";
import { decodeInviteToken, guestAccount } from "../../../src/acl/record/invite-token.ts";
import { derivedReadKey, transportSecretOf } from "../../../src/acl/record/space-keys.ts";
import type { PeerId, SpaceId } from "../../../src/base/ids.ts";
import { openWith } from "../../../src/crypto/box.ts";
import { openAclRecord } from "../../../src/sync/network/acl-append.ts";
import { openLogMessage } from "../../../src/sync/network/log-message.ts";
import { deriveChannelKeys } from "../../../src/sync/network/subjects.ts";
import { filesBelow } from "../../support/files-below.ts";
import { formerReader } from "../../support/hostile/former-reader.ts";
import { leaksIn, missedPlants, openCaptures } from "../../support/hostile/leak-search.ts";
import { documentedConfig, OPERATOR_LOGIN } from "../../support/network/documented-nats.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { startTcpProxy, type TcpProxy } from "../../support/network/tcp-proxy.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, forceSynced, spacesOf, startDevice } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { connectWith, type ReadMessage, readStreams } from "../../support/server/stream-reader.ts";
import { type KnownAccount, knownAccount } from "../../support/worlds/known-account.ts";
import { openStore } from "../../support/worlds/network-replica.ts";
import { liveTogether, type SharedLife } from "../../support/worlds/shared-life.ts";

const SETUP_MS = 150_000;
const WAIT_MS = 60_000;

interface Passed {
  readonly subject: string;
  readonly data: Uint8Array;
}

/** All that a connection of one's own may listen to. */
function listen(nc: NatsConnection): Passed[] {
  const passed: Passed[] = [];
  for (const subject of ["svc.event.>", "svc.hint.>", "_INBOX.>"])
    nc.subscribe(subject, {
      callback: (error, message) => {
        if (!error) passed.push({ subject: message.subject, data: new Uint8Array(message.data) });
      },
    });
  return passed;
}

describeWithNats("what others see of accounts that share a space over a network", () => {
  const stack = new AsyncDisposableStack();
  let proxy: TcpProxy;
  let natsDirectory: string;
  let accounts: Record<"owner" | "other" | "guest" | "stranger", KnownAccount>;
  let stranger: Device;
  let strangerRoot: string;
  let strangerSpace: string;
  let life: SharedLife;
  let keptRoots: { other: string };
  let ownerRoot: string;
  /** Everything in the network's streams, before the removals and in the end. */
  let before: ReadMessage[];
  let after: ReadMessage[];
  let passed: Passed[];
  let passedBefore: number;

  beforeAll(async () => {
    accounts = {
      owner: await knownAccount(),
      other: await knownAccount(),
      guest: await knownAccount(),
      stranger: await knownAccount(),
    };
    const nkeys = Object.values(accounts).map(({ networkKey }) => networkKey.publicText);
    const nats = stack.use(await startNats({ wholeConfig: (place) => documentedConfig(place, undefined, nkeys) }));
    natsDirectory = nats.directory;
    {
      await using operator = openStore(`nats://${OPERATOR_LOGIN}@127.0.0.1:${nats.port}`);
      await operator.init();
    }
    proxy = stack.use(await startTcpProxy(nats.port, { captureBytes: 256 << 20 }));
    const network = `nats://127.0.0.1:${proxy.port}`;
    const raw = await connectWith(nats.url, accounts.stranger.networkKey);
    stack.defer(() => raw.close());
    passed = listen(raw);

    const start = async (name: keyof typeof accounts, dataDir: string): Promise<Device> =>
      stack.use(await startDevice({ network, dataDir, mnemonic: accounts[name].mnemonic }));
    const rootOf = (name: string): string => stack.use(scratchDir(`svc-${name}`)).path;
    const roots = { owner: rootOf("owner"), other: rootOf("other"), guest: rootOf("guest") };
    strangerRoot = rootOf("stranger");
    ownerRoot = roots.owner;
    const owner = await start("owner", roots.owner);
    const other = await start("other", roots.other);
    const guest = await start("guest", roots.guest);
    stranger = await start("stranger", strangerRoot);
    strangerSpace = (await createSpace(stranger.server.client)).id;
    await createObject(stranger.server.client, strangerSpace);

    life = await liveTogether({ owner, other, guest, inboxes: true });
    for (const device of [owner, other]) await forceSynced(device, life.space.id);
    await forceSynced(stranger, strangerSpace);
    before = await readStreams(raw);
    passedBefore = passed.length;

    // What the member has is kept as it is now: being removed, its own server would drop it.
    await other.server.stop();
    keptRoots = { other: rootOf("kept") };
    cpSync(roots.other, keptRoots.other, { recursive: true });
    const back = await start("other", roots.other);

    const base = `/v1/spaces/${life.space.id}`;
    await owner.server.client.del(`${base}/guest-key`);
    await owner.server.client.post(`${base}/acl/remove`, { identities: [other.accountId] }, 204);
    await until(async () => (await spacesOf(back)).every(({ id }) => id !== life.space.id), "the removal", WAIT_MS);
    await life.write("after the removal");
    await owner.server.client.patch(base, { description: "canary description after the removal" });
    await owner.server.client.put("/v1/account/metadata", { name: "canary name after the removal" });
    Object.assign(life.secrets, {
      "description after the removal": "canary description after the removal",
      "name after the removal": "canary name after the removal",
    });
    await until(
      async () => (await owner.server.client.request("GET", `${base}/members/me`)).text.includes("after the removal"),
      "the new name among the members",
      WAIT_MS,
    );
    await forceSynced(owner, life.space.id);
    after = await readStreams(raw);
    await owner.server.stop();
  }, SETUP_MS);
  afterAll(async () => {
    await stack.disposeAsync();
  }, 60_000);

  /** What came after the removals. */
  const since = (): ReadMessage[] => {
    const known = new Set(before.map(({ stream, seq }) => `${stream} ${seq}`));
    return after.filter(({ stream, seq }) => !known.has(`${stream} ${seq}`));
  };
  const transportSecret = (): Uint8Array => life.secrets["transport secret"] as Uint8Array;

  rule(
    "[SYNC-9] neither the wire nor the operator's disk holds content, names, ids or keys, in any usual form",
    async () => {
      const captures = [...proxy.captured(), ...filesBelow(natsDirectory)];
      const seen = openCaptures(captures);
      expect(captures.reduce((sum, { length }) => sum + length, 0)).toBeGreaterThan(100_000);
      const { tag } = deriveChannelKeys(transportSecret());
      expect(leaksIn(seen, { tag })).toEqual(["tag (raw)"]); // it is the space's traffic that is looked at
      expect(Object.keys(life.secrets).length).toBeGreaterThan(50);
      expect(leaksIn(seen, life.secrets)).toEqual([]);
      expect(missedPlants(life.secrets, proxy.captured()[0]!.subarray(0, 500))).toEqual([]);
    },
    WAIT_MS,
  );

  rule(
    "[SYNC-9] a stranger's server and account get no space id, no name and no content of others",
    async () => {
      const { client } = stranger.server;
      const answers: string[] = [];
      for (const path of [
        "/v1/spaces",
        "/v1/spaces?status=all",
        "/v1/identities",
        "/v1/debug/p2p",
        "/v1/health",
        `/v1/spaces/${strangerSpace}/debug`,
      ])
        answers.push((await client.request("GET", path)).text);
      expect((await spacesOf(stranger)).map(({ id }) => id)).toEqual([strangerSpace]);
      await client.fails("GET", `/v1/spaces/${life.space.id}`, undefined, 404, "space.not_found");
      answers.push(stranger.server.stderr());

      const messages = [...before, ...after, ...passed];
      expect(passed.filter(({ subject }) => subject.startsWith("svc.event.")).length).toBeGreaterThan(2);
      const has = [
        ...answers.map((text) => Buffer.from(text)),
        ...filesBelow(strangerRoot),
        ...messages.flatMap(({ subject, data }) => [Buffer.from(subject), Buffer.from(data)]),
      ];
      expect(leaksIn(openCaptures(has), life.secrets)).toEqual([]);
      expect(leaksIn(openCaptures(has), { own: strangerSpace })).toEqual(["own (raw)"]);

      /** What a space's secret opens, seal by seal. */
      const openedWith = (secret: Uint8Array): Uint8Array[] => {
        const keys = deriveChannelKeys(secret);
        return after.flatMap(({ subject, data }) => {
          const record = openAclRecord(keys, data);
          return record ? [record] : (openLogMessage(keys.sealKey, subject, data) ?? []);
        });
      };
      const { techSpaceId } = await client.get<{ techSpaceId: SpaceId }>("/v1/account");
      const own = transportSecretOf(techSpaceId, derivedReadKey(accounts.stranger, TECH_SPACE_NAME));
      expect(openedWith(own).length).toBeGreaterThan(3);
      expect(leaksIn(openCaptures(openedWith(own)), life.secrets)).toEqual([]);
      const shared = leaksIn(openCaptures(openedWith(transportSecret())), life.secrets);
      expect(shared).toContain("space digest (raw)"); // what a member sees, and the search finds
      expect(shared).toContain("owner account key (raw)");
      const letters = after.filter(({ subject }) => subject.startsWith("svc.inbox."));
      const read = (account: KnownAccount) =>
        letters.filter(({ data }) => openWith(account.seed, data, "svc/inbox/v1")).length;
      expect(read(accounts.other)).toBeGreaterThan(0);
      expect(read(accounts.stranger)).toBe(0);
    },
    WAIT_MS,
  );

  rule(
    "[SYNC-9] keys of a removed member and of a revoked guest open nothing that was written after, and all before",
    async () => {
      const context = { spaceId: life.space.id, transportSecret: transportSecret(), messages: after };
      const { guestToken } = life;
      const guest = guestAccount(decodeInviteToken(guestToken!), "guest" as PeerId);
      const written = "canary record after the removal";

      await using owner = await formerReader({ ...context, account: accounts.owner, dataDir: ownerRoot });
      const eventsOf = passed.filter(
        ({ subject }) => subject.startsWith("svc.event.") && owner.tags.has(subject.split(".")[2] ?? ""),
      );
      const lateEvents = eventsOf.filter((event) => passed.indexOf(event) >= passedBefore);
      const all = owner.read(since());
      expect(all.changes).toBeGreaterThanOrEqual(4);
      expect(all.opened).toHaveLength(all.changes);
      expect(all.opened.join()).toContain(written);
      expect(lateEvents).toHaveLength(1);
      expect(owner.readEvent(lateEvents[0]!.subject, lateEvents[0]!.data)).toContain("after the removal");

      expect(owner.profiles().join()).toContain("canary name after the removal");

      for (const [name, former] of Object.entries({
        "the removed member": { account: accounts.other, dataDir: keptRoots.other },
        "the removed member, from the network alone": { account: accounts.other },
        "the revoked guest": { account: guest },
      })) {
        await using reader = await formerReader({ ...context, ...former });
        expect(reader.keys, name).toBeGreaterThan(0);
        const earlier = reader.read(before);
        expect(earlier.changes, name).toBeGreaterThan(8);
        expect(earlier.opened, name).toHaveLength(earlier.changes);
        expect(earlier.opened.join(), name).toContain("canary record of the owner");
        expect(reader.profiles().join(), name).not.toContain("after the removal");
        // What came after lies where it finds nothing.
        expect(reader.read(since()), name).toEqual({ changes: 0, opened: [] });
        expect(
          lateEvents.filter(({ subject }) => reader.tags.has(subject.split(".")[2] ?? "")),
          name,
        ).toEqual([]);
        expect(eventsOf.filter(({ subject, data }) => reader.readEvent(subject, data) !== undefined).length, name).toBe(
          eventsOf.length - lateEvents.length,
        );
      }
    },
    WAIT_MS,
  );
});
