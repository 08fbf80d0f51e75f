/**
 * Devices of two accounts that share a space write to it at random, each behind a proxy that delays, resets, truncates
 * and stalls what passes to the network, while the LAN comes and goes and devices and nats-server are killed. Afterwards
 * all have the same rows, byte by byte, and nothing that was acknowledged is missing. SEED repeats a run.
 */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { mend } from "../../support/network/tcp-line.ts";
import { startTcpProxy, type TcpProxy } from "../../support/network/tcp-proxy.ts";
import { expectConverged } from "../../support/oracle/converged.ts";
import { createRng, runSeed } from "../../support/rng.ts";
import { rounds } from "../../support/rounds.ts";
import { rule } from "../../support/rule.ts";
import { type ScratchDir, scratchDir } from "../../support/scratch.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import { type Device, spacesOf, startDevice } from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";
import { createSpaceWorkload } from "../../support/worlds/space-workload.ts";

const SEED = runSeed("two-accounts");
const STEPS = rounds(50);
const WAIT_MS = 60_000;

interface Seat {
  readonly name: string;
  readonly root: ScratchDir;
  readonly proxy: TcpProxy;
  device: Device | undefined;
  mnemonic: string | undefined;
  lan: boolean;
}

describeWithNats("convergence of two accounts that share a space", () => {
  rule(
    `[SYNC-3] random writes over links that delay, reset, truncate and stall, kill -9 of all kinds; seed ${SEED}`,
    async () => {
      const rng = createRng(SEED);
      await using stack = new AsyncDisposableStack();
      const nats = stack.use(await startNats());
      const seat = async (name: string): Promise<Seat> => ({
        name,
        root: stack.use(scratchDir(`svc-${name}`)),
        proxy: stack.use(await startTcpProxy(nats.port)),
        device: undefined,
        mnemonic: undefined,
        lan: false,
      });
      const owner = await seat("owner");
      const writer = await seat("writer");
      const seats = [owner, writer];
      stack.defer(async () => {
        for (const { device } of seats) await device?.server[Symbol.asyncDispose]();
      });
      const start = async (at: Seat): Promise<Device> => {
        at.device = await startDevice({
          dataDir: at.root.path,
          lan: at.lan,
          network: `nats://127.0.0.1:${at.proxy.port}`,
          ...(at.mnemonic === undefined ? {} : { mnemonic: at.mnemonic }),
        });
        at.mnemonic ??= at.device.mnemonic;
        return at.device;
      };

      const first = await start(owner);
      const space = await createSpace(first.server.client);
      const base = `/v1/spaces/${space.id}`;
      const workload = await createSpaceWorkload(first.server.client, space.id, rng);
      const other = await start(writer);
      const accounts = [{ identity: other.accountId, permission: "writer" }];
      await first.server.client.post(`${base}/acl/add`, { accounts }, 204);
      const pending = async () =>
        (await other.server.client.get<SpaceInfo[]>("/v1/spaces?status=invite_pending")).length;
      await until(async () => (await pending()) === 1, "the writer to be added", WAIT_MS);
      await other.server.client.request("POST", `${base}/invite/accept`);
      for (const account of rng.shuffle([owner, writer]).slice(0, rng.int(0, 2))) {
        const second = await seat(`${account.name}-2`);
        second.mnemonic = account.mnemonic;
        seats.push(second);
        await start(second);
      }
      for (const { name, device } of seats)
        await until(() => workload.isReady(device!.server.client), `the space at ${name}`, WAIT_MS);

      let natsRuns = true;
      let natsHangs = false;
      const burst = async ({ device }: Seat): Promise<void> => {
        const writes = device ? Array.from({ length: rng.int(1, 6) }, () => workload.write(device.server.client)) : [];
        await Promise.all(writes);
      };
      /** Also in the midst of writes, of which some are then acknowledged and some are not. */
      const end = async (at: Seat): Promise<void> => {
        const { device } = at;
        if (!device) return;
        const writes = burst(at);
        if (rng.chance(0.7)) await device.server.kill();
        else await device.server.stop();
        await writes;
        at.device = undefined;
      };
      const breakLink = ({ proxy }: Seat): void => {
        const direction = rng.pick(["up", "down"] as const);
        rng.pick([
          () => proxy.delay(rng.int(5, 300)),
          () => proxy.cutAfter(direction, rng.int(1, 6000), rng.pick(["end", "reset"])),
          () => proxy.stall(direction, true),
          () => proxy.drop(direction, true),
          () => proxy.sever(),
          () => proxy.block(true),
        ])();
      };
      const disturbNats = async (): Promise<void> => {
        if (!natsRuns) {
          await nats.start();
          natsRuns = true;
        } else if (natsHangs) {
          nats.resume();
          natsHangs = false;
        } else if (rng.chance(0.5)) {
          await nats.kill();
          natsRuns = false;
        } else {
          nats.pause();
          natsHangs = true;
        }
      };
      /** A new epoch of keys, which what is written then is sealed with. */
      const rotate = async (): Promise<void> => {
        const device = rng.pick(seats.filter(({ name }) => name.startsWith("owner"))).device;
        await device?.server.client.request("POST", `${base}/invites`, {
          body: { mode: "open", permission: "reader" },
        });
      };

      for (let step = 0; step < STEPS; step++) {
        const at = rng.pick(seats);
        const roll = rng.next();
        if (roll < 0.6) await burst(at);
        else if (roll < 0.74) breakLink(at);
        else if (roll < 0.82) await mend(at.proxy);
        else if (roll < 0.92) {
          await end(at);
          at.lan = rng.chance(0.5);
          if (rng.chance(0.8)) await start(at);
        } else if (roll < 0.96) await disturbNats();
        else await rotate();
      }

      if (natsHangs) nats.resume();
      if (!natsRuns) await nats.start();
      for (const at of seats) {
        await mend(at.proxy);
        if (at.device && rng.chance(0.5)) continue; // healed links alone have to do
        await at.device?.server.stop();
        at.lan = true;
        await start(at);
      }
      const devices = seats.map(({ device }) => device!);
      expect(workload.acknowledged()).toBeGreaterThan(STEPS / 2);
      for (const device of devices) expect((await spacesOf(device)).map(({ id }) => id)).toEqual([space.id]);
      await expectConverged({ devices, spaceId: space.id, workload, seed: SEED, timeoutMs: WAIT_MS });
    },
    280_000,
  );
});
