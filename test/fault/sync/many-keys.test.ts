/**
 * Devices on the LAN with more keys than go into one list of tokens (docs/lan.md): each space that is shared is recognised,
 * whichever side shows its tokens, as the link is made and on the link that stands.
 */
import { expect } from "bun:test";
import { addAccounts } from "../../../src/acl/compose/actions.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { parseAccountId } from "../../../src/crypto/account-id.ts";
import {
  accountOfPhrase,
  meetServer,
  memberKeys,
  ownKeys,
  syncPortOf,
  worldOf,
} from "../../support/hostile/hostile-peer.ts";
import { rule } from "../../support/rule.ts";
import { memoryDir, scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, joinOpen, rowsOf, setName, startDevice, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { aclLogOf, createAccount } from "../../support/worlds/acl-world.ts";

const LONG_MS = 110_000;
const WAIT_MS = 45_000;
const TOKENS_IN_A_LIST = 4_096;
/** A space is recognised by a key of each other member, and by its read key. */
const MEMBERS = 64;
const SPACES = TOKENS_IN_A_LIST / MEMBERS;

/** The spaces that a server knows to share with its peers on the LAN. */
async function sharedAt({ server }: Device): Promise<Set<string>> {
  const { peers } = await server.client.get<{ peers: { spaceIds: string[] }[] }>("/v1/debug/p2p");
  return new Set(peers.flatMap(({ spaceIds }) => spaceIds));
}

rule(
  `[SYNC-6] with more than ${TOKENS_IN_A_LIST} keys on either side every shared space is recognised, the last ones too`,
  async () => {
    using root = scratchDir("svc-many-keys", memoryDir());
    await using server = await startDevice({ lan: true, dataDir: root.path });
    await using honest = await startDevice({ lan: true });
    const owner = await accountOfPhrase(server.mnemonic);
    const member = createAccount();
    const others = [member, ...Array.from({ length: MEMBERS - 1 }, () => createAccount())];
    const accounts = others.map(({ id: identity }) => ({ identity, permission: "writer" as const }));
    const spaceIds: SpaceId[] = [];
    {
      await using relay = await meetServer(await syncPortOf(server), owner, ownKeys(owner));
      for (let n = 0; n < SPACES; n++) {
        const spaceId = (await createSpace(server.server.client, `space ${n}`)).id as SpaceId;
        const world = await worldOf(relay, owner, spaceId);
        world.act(owner, (context) => addAccounts(context, accounts));
        const { aclCount } = await relay.push(spaceId, { aclLog: aclLogOf(world) });
        expect(aclCount).toBe(world.records.length);
        spaceIds.push(spaceId);
      }
    }

    const last = (await createSpace(server.server.client, "the last")).id;
    const objectId = (await createObject(server.server.client, last)).id;
    await joinOpen(server, honest, last);
    for (const [from, name] of [
      [server, "said here"],
      [honest, "said there"],
    ] as const) {
      await setName(from, last, objectId, name);
      await untilSame([server, honest], last, (rows) => rows.includes(name), WAIT_MS);
    }

    // The member's device has as many keys besides, and theirs behind them.
    const serverKey = parseAccountId(server.accountId as never)!;
    const noise = Array.from({ length: 2 * TOKENS_IN_A_LIST }, () => ({
      spaceId: last as SpaceId,
      key: randomBytes(32),
    }));
    const shared = spaceIds.flatMap((spaceId) => memberKeys(member, serverKey, spaceId).spaces);
    const keys = { own: randomBytes(32), spaces: [...noise, ...shared] };
    await using peer = await meetServer(await syncPortOf(server), member, keys);
    expect([...peer.link.sharedSpaces()].sort()).toEqual([...spaceIds].sort());
    await until(async () => (await sharedAt(server)).size === SPACES + 1, "all shared spaces", WAIT_MS);
    expect((await peer.aclLogOf(spaceIds.at(-1)!)).length).toBeGreaterThan(1);

    await setName(honest, last, objectId, "and on it goes");
    await until(async () => (await rowsOf(server, last)).includes("and on it goes"), "an edit", WAIT_MS);
  },
  LONG_MS,
);
