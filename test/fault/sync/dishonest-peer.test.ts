/**
 * A device on the LAN that lies about what it has, lags, says nothing, or sends what cannot be opened: the space is never
 * said to be synced because of it. The peer is made of the code's own link; the server is real.
 */
import { describe, expect } from "bun:test";
import { bytesToHex } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import {
  type ChangeHeader,
  decodeChange,
  encodeChange,
  encodeHeader,
  isDerivedRoot,
} from "../../../src/change/codec/change-codec.ts";
import { digestOfCid } from "../../../src/crypto/cid.ts";
import { type FakeDevice, type Lies, startFakeDevice, vectorOf } from "../../support/hostile/fake-device.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { type Device, setName, startDevice, untilState } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { type KnownAccount, knownAccount } from "../../support/worlds/known-account.ts";
import { recordStates, statesByEndpoint } from "../../support/worlds/state-recorder.ts";

const LONG_MS = 120_000;
const ROUNDS = 25;

interface Place {
  readonly device: Device;
  readonly account: KnownAccount;
  readonly spaceId: string;
  readonly objectId: string;
  readonly fake: FakeDevice;
}

/** A real device and the fake one, met and in step: an honest peer is believed. */
async function meet(): Promise<Place & AsyncDisposable> {
  const account = await knownAccount();
  const stack = new AsyncDisposableStack();
  const device = stack.use(
    await startDevice({ lan: true, mnemonic: account.mnemonic, env: { SVC_SYNC_INTERVAL: "500ms" } }),
  );
  const spaceId = (await createSpace(device.server.client)).id;
  const objectId = (await createObject(device.server.client, spaceId)).id;
  const fake = stack.use(await startFakeDevice(account, spaceId));
  await untilState(device, spaceId, "synced");
  return { device, account, spaceId, objectId, fake, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** What is said of the space while the peer behaves so, over several rounds; a change is written first. */
async function saidWhile(
  { device, spaceId, objectId, fake }: Place,
  lies: Lies,
  write = true,
): Promise<Record<string, string[]>> {
  fake.behave(lies);
  if (write) await setName(device, spaceId, objectId, `name ${bytesToHex(randomBytes(4))}`);
  const recorder = await recordStates(device, spaceId, [objectId]);
  await until(() => recorder.rounds() >= ROUNDS && fake.asked() >= 2, "rounds with the peer", 60_000);
  return statesByEndpoint(await recorder.stop());
}

const SAYS_SAME: Lies = {
  lazy: true,
  state: (truth, request) => ({ ...truth, aclHead: request.aclHead, pending: request.pending, same: true, vector: [] }),
};

const statesIn = (said: Record<string, string[]>): string[] => [...new Set(Object.values(said).flat())];

describe("a peer that is not to be trusted", () => {
  rule(
    "[SYNC-2] a peer that says it has the same, or repeats our own heads, without having the changes: never synced",
    async () => {
      await using place = await meet();
      const { device, spaceId, fake } = place;
      const same = await saidWhile(place, SAYS_SAME);
      expect(statesIn(same)).not.toContain("synced");
      const debug = await device.server.client.get<{ unconfirmed: number }>(`/v1/spaces/${spaceId}/debug`);
      expect(debug.unconfirmed).toBe(1);

      // The same holds for an ACL record, and for nothing else.
      fake.behave({});
      await fake.fetch();
      await untilState(device, spaceId, "synced");
      fake.behave(SAYS_SAME);
      await device.server.client.post(`/v1/spaces/${spaceId}/invites`, {}, 201);
      const rights = await saidWhile(place, SAYS_SAME, false);
      expect(statesIn(rights)).not.toContain("synced");
      expect(await device.server.client.get<unknown>(`/v1/spaces/${spaceId}/debug`)).toMatchObject({
        unconfirmed: 0,
        unconfirmedRights: 1,
      });

      // The heads it repeats are those that it was told; it kept nothing of what they name.
      await fake.fetch();
      const vector = vectorOf(fake.held.values());
      fake.held.clear();
      const repeated = await saidWhile(
        place,
        { lazy: true, mean: true, state: (truth) => ({ ...truth, vector }) },
        false,
      );
      expect(statesIn(repeated)).not.toContain("synced");

      fake.behave({});
      await fake.fetch();
      await untilState(device, spaceId, "synced");
    },
    LONG_MS,
  );

  rule(
    "[SYNC-2] a peer that claims changes which it does not give, lags behind, or does not answer: never synced",
    async () => {
      await using place = await meet();
      const { device, spaceId, fake, account } = place;
      const invented = {
        author: account.signer.publicKey,
        writer: randomBytes(16),
        seq: 5,
        count: 5,
        last: randomBytes(32),
        forks: new Uint8Array(0),
      };
      const greedy = await saidWhile(place, { state: (truth) => ({ ...truth, vector: [...truth.vector, invented] }) });
      expect(statesIn({ space: greedy["sync-status"]!, stream: greedy["sync-status/subscribe"]! })).not.toContain(
        "synced",
      );

      const lagging = await saidWhile(place, { lazy: true });
      expect(statesIn(lagging)).not.toContain("synced");
      const behind = await saidWhile(place, { lazy: true, state: (truth) => ({ ...truth, vector: [] }) });
      expect(statesIn(behind)).not.toContain("synced");
      fake.behave({ silent: true });
      await setName(device, spaceId, place.objectId, "to nobody who answers");
      const recorder = await recordStates(device, spaceId, [place.objectId]);
      await until(() => recorder.rounds() >= ROUNDS * 2, "polls", 60_000);
      expect(statesIn(statesByEndpoint(await recorder.stop()))).not.toContain("synced");
    },
    LONG_MS,
  );

  rule(
    "[SYNC-2] a change for which there is no key is not synced for as long as it waits, and the rest goes on",
    async () => {
      await using place = await meet();
      const { device, spaceId, objectId, fake, account } = place;
      const changes = [...fake.held.values()].flatMap((bytes) => {
        const change = decodeChange(bytes);
        return isDerivedRoot(change) ? [] : [change];
      });
      const object = digestOfCid(objectId)!;
      const ofObject = changes.filter(({ id, header }) => bytesToHex(header.object ?? id) === bytesToHex(object));
      const parents = new Set(ofObject.flatMap(({ header }) => header.parents.map(bytesToHex)));
      const heads = ofObject.filter(({ id }) => !parents.has(bytesToHex(id)));
      const header: ChangeHeader = {
        kind: "change",
        space: digestOfCid(spaceId)!,
        object,
        parents: heads.map(({ id }) => id).sort(Buffer.compare),
        lamport: 1 + Math.max(...heads.map(({ header: { lamport } }) => lamport)),
        writer: randomBytes(16),
        seq: 1,
        prev: null,
        author: account.signer.publicKey,
        time: Date.now(),
        acl: heads[0]!.header.acl,
        keyId: randomBytes(16),
      };
      const locked = encodeChange(encodeHeader(header), randomBytes(100), account.signer);
      fake.held.set(bytesToHex(locked.id), locked.bytes);
      const debug = () =>
        device.server.client.get<{ parked: number; unconfirmed: number }>(`/v1/spaces/${spaceId}/debug`);
      // It may be `syncing` for what it fetched before.
      await until(async () => (await debug()).parked === 1, "the change to wait for its key", 60_000);
      await untilState(device, spaceId, "syncing");
      const said = await saidWhile(place, {});
      expect(statesIn(said)).not.toContain("synced");
      expect(await debug()).toMatchObject({ parked: 1, unconfirmed: 0 });
    },
    LONG_MS,
  );
});
