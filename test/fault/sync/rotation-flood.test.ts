/** Everything that somebody who left can send, over a real network: it changes no state, no status, and costs next to nothing. */
import { expect } from "bun:test";
import { cpSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { encodeAclRecord } from "../../../src/acl/record/record.ts";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import type { ObjectId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { parseAccountId } from "../../../src/crypto/account-id.ts";
import { seal } from "../../../src/crypto/seal.ts";
import { sealLogMessage } from "../../../src/sync/network/log-message.ts";
import { type ChannelKeys, deriveChannelKeys, inboxSubject, logSubject } from "../../../src/sync/network/subjects.ts";
import { filesBelow } from "../../support/files-below.ts";
import { boundsOf } from "../../support/hostile/attack-bounds.ts";
import { processorMsOf } from "../../support/hostile/besieged.ts";
import { bodyBytes, createForger, setOf } from "../../support/hostile/forged-change.ts";
import { inSpaceOf } from "../../support/hostile/former-reader.ts";
import { memoryOf } from "../../support/hostile/hostile-peer.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import {
  type Device,
  forceSynced,
  setName,
  startDevice,
  untilSame,
  untilStatus,
  warnings,
} from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { connectWith, readStreams } from "../../support/server/stream-reader.ts";
import { type KnownAccount, knownAccount } from "../../support/worlds/known-account.ts";
import { placesIn, rotate } from "../../support/worlds/rotations.ts";

const LONG_MS = 120_000;
const WAIT_MS = 60_000;
const MIB = 1 << 20;

interface Sent {
  readonly subject: string;
  readonly data: Uint8Array;
}

/** What it signs itself: records that would let it in again, and changes, under the last key that it had. */
function forgedBy(
  account: KnownAccount,
  of: { dataDir: string; spaceId: string; objectId: string },
  keys: ChannelKeys,
): Promise<Sent[]> {
  return inSpaceOf({ ...of, account }, (space) => {
    const { state } = space.acl;
    const [records, changes] = [logSubject(keys, "a"), logSubject(keys, "c")];
    const object = space.engine.object(of.objectId as ObjectId)!;
    const forger = createForger(space, object, account.signer);
    return Array.from({ length: 100 }, (_, at): Sent[] => {
      const op = { op: "accountAdd", account: account.signer.publicKey, permission: "admin" } as const;
      const fields = { space: state.space!, prev: state.head!, time: at, clock: state.clocks.at(-1)!, ops: [op] };
      const record = encodeAclRecord(fields, account.signer).bytes;
      const body = bodyBytes(`{"dataset":"objects","records":[${setOf(`r${at}`, "svc.name", '"forged"')}]}`);
      return [
        { subject: records, data: seal(keys.sealKey, record, utf8ToBytes(records)) },
        { subject: changes, data: sealLogMessage(keys.sealKey, changes, [forger.write(body).bytes]) },
      ];
    }).flat();
  });
}

/** Names that might be those of the present place, as far as its keys let it guess. */
function guessed(places: readonly ChannelKeys[]): string[] {
  const seeds = places.flatMap(({ sealKey, messageIdKey, eventKey, chunkKey }) => [
    sealKey,
    messageIdKey,
    eventKey,
    chunkKey,
  ]);
  return [...seeds, ...Array.from({ length: 100 }, () => randomBytes(32))].flatMap((seed) => {
    const keys = deriveChannelKeys(seed);
    return [logSubject(keys, "a"), logSubject(keys, "c")];
  });
}

const bytesOf = ({ server }: Device): number => filesBelow(server.dataDir).reduce((sum, { length }) => sum + length, 0);
const costOf = (device: Device) => ({
  disk: bytesOf(device),
  memory: memoryOf(device),
  processorMs: processorMsOf(device),
});

describeWithNats("who left, on a network", () => {
  rule(
    "[ACL-6] old and guessed tags, replays, forged records and floods change neither state, disk, memory nor a status",
    async () => {
      await using nats = await startNats();
      const account = await knownAccount();
      using formerRoot = scratchDir("svc-former");
      using keptRoot = scratchDir("svc-kept");
      const network = nats.url;
      const env = { SVC_SYNC_INTERVAL: "1h" };
      await using owner = await startDevice({ network, env });
      await using stayer = await startDevice({ network, env });
      await using former = await startDevice({ network, dataDir: formerRoot.path, mnemonic: account.mnemonic });
      const space = await createSpace(owner.server.client, "Left");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id);
      const accounts = [stayer, former].map(({ accountId }) => ({ identity: accountId, permission: "writer" }));
      await owner.server.client.post(`${base}/acl/add`, { accounts }, 204);
      for (const device of [stayer, former]) {
        await untilStatus(device, space.id, "invite_pending");
        await device.server.client.request("POST", `${base}/invite/accept`);
      }
      await rotate(owner, space.id);
      await setName(owner, space.id, object.id, "while it was a member");
      await untilSame([owner, stayer, former], space.id, (rows) => rows.includes("while it was"), WAIT_MS);
      await former.server.stop();
      cpSync(formerRoot.path, keptRoot.path, { recursive: true });
      await owner.server.client.post(`${base}/acl/remove`, { identities: [former.accountId] }, 204);
      for (const [index, device] of [owner, stayer].entries())
        await setName(device, space.id, object.id, `without it ${index}`);
      for (const device of [owner, stayer]) await forceSynced(device, space.id);
      await untilSame([owner, stayer], space.id, (rows) => rows.includes("without it"), WAIT_MS);

      const of = { dataDir: keptRoot.path, spaceId: space.id, objectId: object.id };
      const places = await placesIn(of.dataDir, account, space.id);
      expect(places).toHaveLength(2);
      const subjects = places.flatMap((keys) => [logSubject(keys, "a"), logSubject(keys, "c")]);
      await using nc = await connectWith(network, account.networkKey);
      const held = (await readStreams(nc)).filter(({ subject }) => subjects.includes(subject));
      const inboxes = [owner, stayer].map(({ accountId }) => inboxSubject(parseAccountId(accountId as never)!));
      const flood: Sent[] = [
        ...held,
        ...held,
        ...(await forgedBy(account, of, places.at(-1)!)),
        ...subjects.flatMap((subject) => Array.from({ length: 40 }, () => ({ subject, data: randomBytes(256 << 10) }))),
        ...guessed(places).map((subject) => ({ subject, data: randomBytes(2_000) })),
        ...inboxes.flatMap((subject) => Array.from({ length: 100 }, () => ({ subject, data: randomBytes(30_000) }))),
      ];
      expect(flood.reduce((sum, { data }) => sum + data.length, 0)).toBeGreaterThan(40 * MIB);

      const roster = await owner.server.client.get<unknown>(`${base}/members`);
      await using statuses = await owner.server.client.stream("GET", "/v1/sync-status/subscribe");
      await statuses.next();
      const said = statuses.rawText();
      const before = [owner, stayer].map(costOf);
      const js = jetstream(nc);
      for (const { subject, data } of flood) await js.publish(subject, data);
      await nc.flush();
      const after = [owner, stayer].map(costOf);
      expect(statuses.rawText()).toBe(said);
      const bounds = boundsOf("an account that left, over the network");
      for (const [index] of after.entries()) {
        const grown = (what: "disk" | "memory" | "processorMs") => after[index]![what] - before[index]![what];
        expect(grown("disk") / MIB).toBeLessThan(bounds.diskMiB);
        expect(grown("memory") / MIB).toBeLessThan(bounds.memoryMiB);
        expect(grown("processorMs") / 1_000).toBeLessThan(bounds.processorS);
        console.log(
          `grown by ${JSON.stringify({ disk: grown("disk"), memory: grown("memory"), cpu: grown("processorMs") })}`,
        );
      }

      await setName(stayer, space.id, object.id, "and on it goes");
      await untilSame([owner, stayer], space.id, (rows) => rows.includes("and on it goes"), WAIT_MS);
      for (const device of [owner, stayer]) {
        await forceSynced(device, space.id);
        expect(await device.server.client.get<unknown>(`${base}/members`)).toEqual(roster as never);
        const debug = await device.server.client.get<unknown>(`${base}/debug`);
        expect(debug).toMatchObject({ parked: 0, quarantined: [], alarms: [], cut: [], networkResets: 0 });
        expect(warnings(device)).toEqual([]);
      }
    },
    LONG_MS,
  );
});
