/** The network's secrets rotate with the read key: who left is out, and nobody who stays is left behind. */
import { expect } from "bun:test";
import { cpSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { randomBytes } from "../../../src/base/random.ts";
import { type ChannelKeys, logSubject } from "../../../src/sync/network/subjects.ts";
import { leaksIn } from "../../support/hostile/leak-search.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { startNatsProxy } from "../../support/network/nats-proxy.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import {
  type Device,
  forceSynced,
  joinOpen,
  mintInvite,
  setName,
  startDevice,
  statusOf,
  untilRequest,
  untilSame,
  untilStatus,
  warnings,
} from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";
import { connectWith, type ReadMessage } from "../../support/server/stream-reader.ts";
import { createAccount } from "../../support/worlds/acl-world.ts";
import { knownAccount } from "../../support/worlds/known-account.ts";
import { allOn, placesIn, rotate, untilRead } from "../../support/worlds/rotations.ts";

const LONG_MS = 180_000;
const WAIT_MS = 60_000;

/** What is appended to a log, as the operator sees it pass. */
interface Appended {
  readonly subject: string;
  readonly id: string;
  /** Behind which message alone it may stand. */
  readonly behind: number | undefined;
}

function watchLogs(operator: NatsConnection): Appended[] {
  const appended: Appended[] = [];
  operator.subscribe("svc.log.>", {
    callback: (error, { subject, headers }) => {
      if (error) throw error;
      const behind = headers?.get("Nats-Expected-Last-Subject-Sequence");
      appended.push({ subject, id: headers?.get("Nats-Msg-Id") ?? "", behind: behind ? Number(behind) : undefined });
    },
  });
  return appended;
}

/** The subjects of logs, with how many messages each holds. */
function logsIn(messages: readonly ReadMessage[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { subject } of messages)
    if (subject.startsWith("svc.log.")) counts.set(subject, (counts.get(subject) ?? 0) + 1);
  return counts;
}

/** Every eight bytes that stand in a message. */
const piecesOf = (data: Uint8Array): string[] =>
  Array.from({ length: Math.max(0, data.length - 7) }, (_, at) =>
    Buffer.from(data.subarray(at, at + 8)).toString("hex"),
  );

const aclLogOf = async (device: Device, spaceId: string): Promise<unknown> =>
  (await device.server.client.get<{ members: unknown }>(`/v1/spaces/${spaceId}/members`)).members;

describeWithNats("rotations on a network", () => {
  rule(
    "[ACL-6] who was removed finds no new place, and nothing that it puts into the old one reaches those who stay",
    async () => {
      await using nats = await startNats();
      const [account, ownerAccount] = [await knownAccount(), await knownAccount()];
      using formerRoot = scratchDir("svc-former");
      using ownerRoot = scratchDir("svc-owner");
      using keptRoot = scratchDir("svc-kept");
      const network = nats.url;
      const { mnemonic } = ownerAccount;
      await using owner = await startDevice({ network, dataDir: ownerRoot.path, mnemonic });
      await using stayer = await startDevice({ network });
      await using former = await startDevice({ network, dataDir: formerRoot.path, mnemonic: account.mnemonic });
      const space = await createSpace(owner.server.client, "Rotating");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id);
      const accounts = [stayer, former].map(({ accountId }) => ({ identity: accountId, permission: "writer" }));
      await owner.server.client.post(`${base}/acl/add`, { accounts }, 204);
      for (const device of [stayer, former]) {
        await untilStatus(device, space.id, "invite_pending");
        await device.server.client.request("POST", `${base}/invite/accept`);
      }
      for (const device of [stayer, former]) await untilRead(device, space.id, object.id);
      await setName(former, space.id, object.id, "while a member");
      await untilSame([owner, stayer, former], space.id, (rows) => rows.includes("while a member"), WAIT_MS);
      await forceSynced(former, space.id);
      await former.server.stop();
      cpSync(formerRoot.path, keptRoot.path, { recursive: true });
      const held = await allOn(nats);
      await using operator = await connectWith(nats.url, account.networkKey);
      const appended = watchLogs(operator);

      await owner.server.client.post(`${base}/acl/remove`, { identities: [former.accountId] }, 204);
      for (const device of [owner, stayer]) await forceSynced(device, space.id);
      const ofRotation = appended.splice(0);
      for (const [index, device] of [owner, stayer].entries())
        await setName(device, space.id, object.id, `after the removal ${index}`);
      await createObject(stayer.server.client, space.id, named("for those who stay"));
      await untilSame([owner, stayer], space.id, (rows) => rows.includes("for those who stay"), WAIT_MS);
      await forceSynced(owner, space.id);
      await forceSynced(stayer, space.id);

      // What it can compute names nothing of what came since, but the record that says that it is out.
      const places = await placesIn(keptRoot.path, account, space.id);
      expect(places).toHaveLength(1);
      const known = new Set(places.flatMap((keys) => [logSubject(keys, "c"), logSubject(keys, "a")]));
      const [before, after] = [logsIn(held), logsIn(await allOn(nats))];
      const grown = [...after].filter(([subject, count]) => count > (before.get(subject) ?? 0));
      const ofKnown = grown.filter(([subject]) => known.has(subject));
      const records = logSubject(places[0]!, "a");
      expect(ofKnown.map(([subject]) => subject)).toEqual([records]);
      expect(after.get(records)).toBe(before.get(records)! + 1);
      expect(grown.length).toBeGreaterThanOrEqual(3);

      // Nor do the messages of one place share anything with those of another, but the subject's beginning.
      const all = (await allOn(nats)).filter(({ subject }) => subject.startsWith("svc.log."));
      const [old, fresh] = [
        all.filter(({ subject }) => known.has(subject)),
        all.filter(({ subject }) => !known.has(subject)),
      ];
      const pieces = new Set(old.flatMap(({ data }) => piecesOf(data)));
      const ownPlaces = fresh.filter(({ subject }) => grown.some(([name]) => name === subject));
      expect(ownPlaces.length).toBeGreaterThan(3);
      expect(ownPlaces.filter(({ data }) => piecesOf(data).some((piece) => pieces.has(piece)))).toEqual([]);
      const isLinked = ({ subject }: ReadMessage) => places.some(({ tag }) => subject.includes(tag));
      expect(ownPlaces.filter(isLinked)).toEqual([]);

      // It puts everything there that it has, and more than that.
      const roster = await aclLogOf(owner, space.id);
      const nc = await connectWith(nats.url, account.networkKey);
      const js = jetstream(nc);
      for (const subject of known) {
        for (const { data } of held.filter((message) => message.subject === subject)) await js.publish(subject, data);
        for (let count = 0; count < 50; count++) await js.publish(subject, randomBytes(1000));
      }
      await nc.close();
      await using proxy = await startNatsProxy(nats.port);
      const back = await startDevice({ network: proxy.url, dataDir: keptRoot.path, mnemonic: account.mnemonic });
      await using _back = back;
      await untilStatus(back, space.id, "deleted");
      await setName(owner, space.id, object.id, "and on it goes");
      await untilSame([owner, stayer], space.id, (text) => text.includes("and on it goes"), WAIT_MS);
      for (const device of [owner, stayer]) {
        await forceSynced(device, space.id);
        expect(await aclLogOf(device, space.id)).toEqual(roster as never);
        const debug = await device.server.client.get<unknown>(`${base}/debug`);
        expect(debug).toMatchObject({ parked: 0, quarantined: [], alarms: [], cut: [], networkResets: 0 });
        expect(warnings(device)).toEqual([]);
      }

      const everythingStored = await allOn(nats);
      // Neither what it sent and got, nor anything in the old place, leads to the new one.
      await owner.server.stop();
      const [last, present] = (await placesIn(ownerRoot.path, ownerAccount, space.id)).slice(-2) as [
        ChannelKeys,
        ChannelKeys,
      ];
      expect(leaksIn(proxy.captured(), { tag: last.tag })).toEqual(["tag (raw)"]);
      const { tag, sealKey, messageIdKey, eventKey, chunkKey } = present;
      expect(leaksIn(proxy.captured(), { tag, sealKey, messageIdKey, eventKey, chunkKey })).toEqual([]);
      const everything = [...appended, ...ofRotation];
      const of = ({ tag: name }: ChannelKeys, many: readonly Appended[]) =>
        many.filter(({ subject }) => subject.split(".")[3] === name);
      // In time the two meet in one message each, the record and the link. Whoever was slower to bring the link is refused.
      const slotsOf = (keys: ChannelKeys) =>
        new Set(of(keys, ofRotation).map(({ subject, behind }) => `${subject} ${behind}`)).size;
      expect(slotsOf(last)).toBe(1);
      expect(slotsOf(present)).toBe(1);
      expect(of(present, everything).length).toBeGreaterThan(3);
      // What is put there names nothing but sequences of its own subject, and no id that was named before.
      const seqsOf = (name: string) => everythingStored.filter(({ subject }) => subject === name).map(({ seq }) => seq);
      const oldIds = new Set(of(last, everything).map(({ id }) => id));
      for (const { subject, id, behind } of of(present, everything)) {
        if (behind !== undefined) expect([0, ...seqsOf(subject)]).toContain(behind);
        if (id !== "") expect([...oldIds]).not.toContain(id);
      }
    },
    LONG_MS,
  );

  rule(
    "[ACL-7] a device away during ten rotations finds its way, and what it wrote meanwhile reaches everybody",
    async () => {
      await using nats = await startNats();
      using awayRoot = scratchDir("svc-away");
      const network = nats.url;
      await using owner = await startDevice({ network });
      const space = await createSpace(owner.server.client, "Away");
      const object = await createObject(owner.server.client, space.id, named("the oldest"));
      const other = await createObject(owner.server.client, space.id, named("another"));
      let away = await startDevice({ network, dataDir: awayRoot.path });
      await joinOpen(owner, away, space.id);
      await untilSame([owner, away], space.id, (rows) => rows.includes("another"), WAIT_MS);
      await forceSynced(away, space.id);
      await away.server.stop();
      away = await startDevice({ dataDir: awayRoot.path });
      await setName(away, space.id, other.id, "written while away");
      await away.server.stop();

      for (let count = 0; count < 10; count++) {
        await rotate(owner, space.id);
        await setName(owner, space.id, object.id, `epoch ${count}`);
      }
      await forceSynced(owner, space.id);
      away = await startDevice({ network, dataDir: awayRoot.path });
      await using _away = away;
      const isWhole = (rows: string) => rows.includes("epoch 9") && rows.includes("written while away");
      await untilSame([owner, away], space.id, isWhole, WAIT_MS);
      await forceSynced(away, space.id);

      // Whoever comes now reads from the oldest change on.
      await using late = await startDevice({ network });
      await joinOpen(owner, late, space.id, "reader");
      await untilSame([owner, away, late], space.id, isWhole, WAIT_MS);
      await using second = await startDevice({
        network,
        mnemonic: away.mnemonic === "" ? owner.mnemonic : away.mnemonic,
      });
      await untilSame([owner, second], space.id, isWhole, WAIT_MS);
      expect((await statusOf(late, space.id)).state).not.toBe("error");
    },
    LONG_MS,
  );

  rule(
    "[ACL-7] an open invite, a guest link and a request outlive ten rotations",
    async () => {
      await using nats = await startNats();
      const network = nats.url;
      await using owner = await startDevice({ network });
      await using admin = await startDevice({ network });
      const space = await createSpace(owner.server.client, "Links");
      const base = `/v1/spaces/${space.id}`;
      await createObject(owner.server.client, space.id, named("for whoever comes"));
      await joinOpen(owner, admin, space.id);
      const grant = { changes: [{ identity: admin.accountId, permission: "admin" }] };
      await owner.server.client.post(`${base}/acl/permissions`, grant, 204);
      const guestKey = await owner.server.client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201);
      const asking = await mintInvite(owner, space.id);
      await rotate(owner, space.id, 10);

      const tagsBefore = new Set([...logsIn(await allOn(nats)).keys()].map((subject) => subject.split(".")[3]!));
      await using proxy = await startNatsProxy(nats.port);
      await using asker = await startDevice({ network: proxy.url });
      await asker.server.client.post("/v1/spaces/join", { inviteToken: asking, metadata: { name: "Asker" } }, 202);
      const request = await untilRequest(admin, space.id, WAIT_MS);
      expect(request).toMatchObject({ identity: asker.accountId, name: "Asker" });
      // Until it is let in it has asked for nothing of anybody's logs but its own.
      expect(proxy.tags().size).toBeGreaterThan(0);
      expect([...proxy.tags()].filter((tag) => tagsBefore.has(tag))).toEqual([]);
      await rotate(owner, space.id);
      await untilAccepted(admin, base, request.requestRecordId);
      await untilStatus(asker, space.id, "active");
      await untilRead(asker, space.id, "for whoever comes");

      const open = await mintInvite(owner, space.id, { mode: "open", permission: "writer" });
      await rotate(owner, space.id, 10);
      await owner.server.client.post(`${base}/sync`, {}, 204);
      await owner.server.stop();
      await using guest = await startDevice({ network });
      await guest.server.client.post("/v1/spaces/join", { inviteToken: guestKey.inviteToken }, 202);
      await untilRead(guest, space.id, "for whoever comes");
      await using joiner = await startDevice({ network });
      await joiner.server.client.post("/v1/spaces/join", { inviteToken: open }, 202);
      await untilRead(joiner, space.id, "for whoever comes");
      await createObject(joiner.server.client, space.id, named("by who came"));
      for (const device of [guest, admin, asker]) await untilRead(device, space.id, "by who came");
    },
    LONG_MS,
  );

  rule(
    "[ACL-7] rotations that were made apart end in one place, whichever of the two branches wins",
    async () => {
      await using nats = await startNats();
      using root = scratchDir("svc-apart");
      const network = nats.url;
      await using first = await startDevice({ network });
      await using member = await startDevice({ network });
      const space = await createSpace(first.server.client, "Apart");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(first.server.client, space.id, named("begun"));
      await joinOpen(first, member, space.id);
      for (let round = 0; round < 2; round++) {
        const identities = [createAccount().id, createAccount().id];
        const accounts = identities.map((identity) => ({ identity, permission: "reader" }));
        await first.server.client.post(`${base}/acl/add`, { accounts }, 204);
        let second = await startDevice({ network, dataDir: root.path, mnemonic: first.mnemonic });
        const knows = async () =>
          (await second.server.client.request("GET", `${base}/members`)).text.includes(identities[1]!);
        await until(knows, "both to be known", WAIT_MS);
        await forceSynced(second, space.id);
        await second.server.stop();
        second = await startDevice({ dataDir: root.path });
        await second.server.client.post(`${base}/acl/remove`, { identities: [identities[0]] }, 204);
        await setName(second, space.id, object.id, `apart ${round}`);
        await second.server.stop();
        await first.server.client.post(`${base}/acl/remove`, { identities: [identities[1]] }, 204);
        const own = await createObject(first.server.client, space.id, named(`meanwhile ${round}`));
        await untilSame([first, member], space.id, (rows) => rows.includes(own.id), WAIT_MS);

        second = await startDevice({ network, dataDir: root.path, mnemonic: first.mnemonic });
        await using _second = second;
        const isWhole = (rows: string) => rows.includes(`apart ${round}`) && rows.includes(`meanwhile ${round}`);
        await untilSame([first, second, member], space.id, isWhole, WAIT_MS);
        for (const device of [first, second, member]) await forceSynced(device, space.id);
        const rosters = await Promise.all([first, second, member].map((device) => aclLogOf(device, space.id)));
        expect(rosters[1]).toEqual(rosters[0] as never);
        expect(rosters[2]).toEqual(rosters[0] as never);
        await second.server.stop();
      }
    },
    LONG_MS,
  );
});

/** The log may be on its way to a new place: the admin is told of the request, and accepts it. */
const untilAccepted = (device: Device, base: string, requestRecordId: string): Promise<void> =>
  until(
    async () => {
      const body = { requestRecordId, permission: "writer" };
      return (await device.server.client.request("POST", `${base}/acl/accept`, { body })).status === 204;
    },
    "the request to be accepted",
    WAIT_MS,
  );
