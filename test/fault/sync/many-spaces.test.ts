/**
 * Two accounts on the LAN that share spaces by the hundred: every one of them is recognised, gets there and says `synced`, an edit
 * anywhere arrives, after a restart too, and no server grows without bound. `SPACES=1000` by hand.
 */
import { expect } from "bun:test";
import { createSemaphore } from "../../../src/base/semaphore.ts";
import { processorMsOf } from "../../support/hostile/besieged.ts";
import { memoryOf } from "../../support/hostile/hostile-peer.ts";
import { timed } from "../../support/latency.ts";
import { rule } from "../../support/rule.ts";
import { memoryDir, scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { descriptorsOf } from "../../support/server/descriptors.ts";
import {
  type Device,
  mintInvite,
  rowsOf,
  setName,
  spacesOf,
  startDevice,
  statusOf,
} from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const SPACES = Number(process.env["SPACES"] ?? 40);
const HANDS = 4;
const WAIT_MS = 60_000 + SPACES * 600;
/** What a server may hold for each space that it shares, and besides. */
const BYTES_A_SPACE = 500_000;
const BYTES_BESIDES = 300 << 20;
/** How long an edit may take among them all, on a machine that does other things too. */
const EDIT_MS = 20_000;

interface Shared {
  readonly spaceId: string;
  readonly objectId: string;
}

function inTurn<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const semaphore = createSemaphore(HANDS);
  return Promise.all(items.map((item) => semaphore(() => run(item))));
}

const report = (name: string, device: Device): string =>
  `${name}: ${Math.round(memoryOf(device) / 2 ** 20)} MiB, ${processorMsOf(device)} ms of a processor, ` +
  `${descriptorsOf(device.server.pid)} files`;

/** Spaces that a device says nothing false of, and that are not yet synced. */
async function unsynced(device: Device, spaces: readonly Shared[]): Promise<string[]> {
  const states = await inTurn(
    spaces,
    async ({ spaceId }) => [spaceId, (await statusOf(device, spaceId)).state] as const,
  );
  return states.filter(([, state]) => state !== "synced").map(([spaceId, state]) => `${spaceId} ${state}`);
}

async function expectEdits(from: Device, to: Device, spaces: readonly Shared[], name: string): Promise<number> {
  let slowest = 0;
  for (const { spaceId, objectId } of [spaces[0]!, spaces[spaces.length >> 1]!, spaces.at(-1)!]) {
    const tookMs = await timed(async () => {
      await setName(from, spaceId, objectId, name);
      await until(async () => (await rowsOf(to, spaceId)).includes(name), `${name} in ${spaceId}`, WAIT_MS);
    });
    slowest = Math.max(slowest, tookMs);
  }
  return slowest;
}

rule(
  `[SYNC-6] ${SPACES} spaces that two accounts share on the LAN are all synced, and an edit in any of them arrives, after a restart too`,
  async () => {
    using ownerRoot = scratchDir("svc-many-spaces", memoryDir());
    using otherRoot = scratchDir("svc-many-spaces", memoryDir());
    const start = async (root: string): Promise<Device> => startDevice({ lan: true, dataDir: root });
    let owner = await start(ownerRoot.path);
    let other = await start(otherRoot.path);
    try {
      const { client } = owner.server;
      let spaces: Shared[] = [];
      const sharedMs = await timed(async () => {
        spaces = await inTurn(Array.from({ length: SPACES }), async () => {
          const spaceId = (await createSpace(client)).id;
          const objectId = (await createObject(client, spaceId)).id;
          const inviteToken = await mintInvite(owner, spaceId, { mode: "open", permission: "writer" });
          const joining = { body: { inviteToken }, timeoutMs: WAIT_MS };
          expect((await other.server.client.request("POST", "/v1/spaces/join", joining)).status).toBe(202);
          return { spaceId, objectId };
        });
        const ids = new Set(spaces.map(({ spaceId }) => spaceId));
        const active = async () =>
          (await spacesOf(other)).filter(({ id, status }) => ids.has(id) && status === "active").length === SPACES;
        await until(active, "all spaces to be joined", WAIT_MS);
      });
      const allSynced = async (device: Device): Promise<void> => {
        let left: string[] = [];
        await until(
          async () => {
            left = await unsynced(device, spaces);
            return left.length === 0;
          },
          "all spaces to be synced",
          WAIT_MS,
          200,
        ).catch((error: Error) => {
          throw new Error(`${error.message}; ${left.length} are not: ${left.slice(0, 5).join(", ")}`);
        });
      };
      const syncedMs = await timed(() => Promise.all([allSynced(owner), allSynced(other)]));
      console.log(
        `${SPACES} spaces were joined within ${sharedMs.toFixed(0)} ms, synced ${syncedMs.toFixed(0)} ms later`,
      );
      const edits = [
        await expectEdits(owner, other, spaces, "said by the owner"),
        await expectEdits(other, owner, spaces, "said by the other"),
      ];
      console.log(
        `an edit took at most ${Math.max(...edits).toFixed(0)} ms\n${report("owner", owner)}\n${report("other", other)}`,
      );

      await other.server.stop(60_000);
      await setName(owner, spaces.at(-1)!.spaceId, spaces.at(-1)!.objectId, "said meanwhile");
      await owner.server.stop(60_000);
      owner = await start(ownerRoot.path);
      other = await start(otherRoot.path);
      const againMs = await timed(async () => {
        const { spaceId } = spaces.at(-1)!;
        await until(async () => (await rowsOf(other, spaceId)).includes("said meanwhile"), "what was missed", WAIT_MS);
        await Promise.all([allSynced(owner), allSynced(other)]);
      });
      edits.push(await expectEdits(other, owner, spaces, "said after the restart"));
      console.log(
        `all were synced ${againMs.toFixed(0)} ms after a restart, an edit took ${edits.at(-1)?.toFixed(0)} ms`,
      );
      for (const [name, device] of [["owner", owner] as const, ["other", other] as const]) {
        console.log(report(name, device));
        expect(memoryOf(device)).toBeLessThan(BYTES_BESIDES + SPACES * BYTES_A_SPACE);
        expect(device.server.stderr()).not.toMatch(/ (WARN|ERROR) /);
      }
      expect(Math.max(...edits)).toBeLessThan(EDIT_MS);
    } finally {
      await other[Symbol.asyncDispose]();
      await owner[Symbol.asyncDispose]();
    }
  },
  6 * WAIT_MS,
);
