/**
 * A member on the LAN that serves an older ACL log, or another one than before: what was seen stays, people are
 * told of two that cannot both be, and honest sync goes on.
 */
import { describe, expect } from "bun:test";
import { addAccounts } from "../../../src/acl/compose/actions.ts";
import { composeRecord } from "../../../src/acl/compose/compose.ts";
import { bytesToHex } from "../../../src/base/bytes.ts";
import type { AccountId, SpaceId } from "../../../src/base/ids.ts";
import { parseAccountId } from "../../../src/crypto/account-id.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import {
  accountOfPhrase,
  type HostilePeer,
  meetServer,
  memberKeys,
  type Offer,
  ownKeys,
  syncPortOf,
  warningsOf,
  worldOf,
} from "../../support/hostile/hostile-peer.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, joinOpen, setName, startDevice, untilSame, untilSynced } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { aclLogOf, createAccount } from "../../support/worlds/acl-world.ts";

const LONG_MS = 110_000;
const WAIT_MS = 40_000;

interface Debug {
  alarms: { kind: string; record: string }[];
}

describe("a member that serves an ACL log that is not the present one", () => {
  rule(
    "[ACL-13] an older log changes nothing; of two by admins the first stays and debug shows the alarm, over a restart, until the owner decides",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using root = scratchDir("svc-server");
      await using stack = new AsyncDisposableStack();
      const founder = stack.use(await startDevice({ lan: true, dataDir: ownerRoot.path }));
      let server = await startDevice({ lan: true, dataDir: root.path });
      const honest = stack.use(await startDevice({ lan: true }));
      try {
        const spaceId = (await createSpace(founder.server.client)).id as SpaceId;
        const base = `/v1/spaces/${spaceId}`;
        const object = await createObject(founder.server.client, spaceId);
        await joinOpen(founder, server, spaceId);
        await joinOpen(founder, honest, spaceId);
        const owner = await accountOfPhrase(founder.mnemonic);
        const admin = createAccount();
        const accounts = [{ identity: admin.id, permission: "admin" }];
        await founder.server.client.post(`${base}/acl/add`, { accounts }, 204);

        const relay = await meetServer(await syncPortOf(founder), owner, ownKeys(owner));
        const world = await worldOf(relay, owner, spaceId);
        await relay[Symbol.asyncDispose]();
        const aclLog = aclLogOf(world);
        /** Follows the log as it was before the admin began to lie. */
        const next = (identity: string) => {
          const context = world.contextOf(admin);
          return composeRecord(context, addAccounts(context, [{ identity, permission: "reader" }])).bytes;
        };
        const [first, second] = [createAccount().id, createAccount().id];
        const [seen, other] = [next(first), next(second)];

        const meet = async () => {
          const keys = memberKeys(admin, parseAccountId(server.accountId as AccountId)!, spaceId);
          return meetServer(await syncPortOf(server), admin, keys);
        };
        const headAfter = async (peer: HostilePeer, offer: Offer) =>
          bytesToHex((await peer.push(spaceId, offer)).aclHead);
        const alarmsAt = async (device: Device) =>
          (await device.server.client.get<Debug>(`${base}/debug`)).alarms.map(({ kind, record }) => [kind, record]);
        const rosterOf = async (device: Device) => {
          const { members } = await device.server.client.get<{ members: { identity: string }[] }>(`${base}/members`);
          return members.map(({ identity }) => identity).sort();
        };
        let edits = 0;
        const honestSyncGoesOn = async () => {
          const name = `honest edit ${++edits}`;
          await setName(honest, spaceId, object.id, name);
          await untilSame([server, honest], spaceId, (rows) => rows.includes(name), WAIT_MS);
        };

        for (const device of [server, honest])
          await until(async () => (await rosterOf(device)).includes(admin.id), "the admin", WAIT_MS);
        await untilSame([founder, server, honest], spaceId, (rows) => rows.includes(object.id), WAIT_MS);
        // Its device would put what admins did apart in order at once.
        await founder.server.stop();

        const head = bytesToHex(sha256(seen));
        const liar = await meet();
        expect(await headAfter(liar, { aclLog: [...aclLog, seen] })).toBe(head);
        await until(
          async () => (await rosterOf(honest)).includes(first),
          "the new member at the honest one's",
          WAIT_MS,
        );
        const roster = await rosterOf(server);

        for (let length = 1; length <= aclLog.length; length++)
          expect([length, await headAfter(liar, { aclLog: aclLog.slice(0, length) })]).toEqual([length, head]);
        expect(await alarmsAt(server)).toEqual([]);
        await honestSyncGoesOn();

        const split = [["split", bytesToHex(sha256(other))]];
        expect(await headAfter(liar, { aclLog: [...aclLog, other] })).toBe(head);
        expect(await alarmsAt(server)).toEqual(split);
        expect(await rosterOf(server)).toEqual(roster);
        // Of the liar: a relay that is gone may have been asked for what it claimed.
        expect(warningsOf(server, "refused").filter((line) => line.includes(admin.id))).toHaveLength(1);
        await honestSyncGoesOn();
        await liar[Symbol.asyncDispose]();

        await server.server.kill();
        server = await startDevice({ lan: true, dataDir: root.path });
        expect(await alarmsAt(server)).toEqual(split);
        await using again = await meet();
        for (const lie of [[...aclLog, other], aclLog]) expect(await headAfter(again, { aclLog: lie })).toBe(head);
        await honestSyncGoesOn();

        const back = stack.use(await startDevice({ lan: true, dataDir: ownerRoot.path }));
        for (const device of [back, server, honest])
          await until(
            async () => (await rosterOf(device)).includes(second) && (await alarmsAt(device)).length === 0,
            "the owner's decision",
            WAIT_MS,
          );
        for (const device of [back, server, honest]) {
          expect(await rosterOf(device)).toEqual([...roster, second].sort());
          await untilSynced(device, spaceId, WAIT_MS);
        }
        const after = await headAfter(again, { aclLog });
        expect(await headAfter(again, { aclLog: [...aclLog, other] })).toBe(after);
        expect(await alarmsAt(server)).toEqual([]);
        await honestSyncGoesOn();
      } finally {
        await server.server[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );
});
