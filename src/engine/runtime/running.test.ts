import { expect, test } from "bun:test";
import { scratchDir } from "../../../test/support/scratch.ts";
import { silentLog } from "../../base/log.ts";
import { startRunning } from "./running.ts";
import type { RuntimeDeps } from "./runtime-deps.ts";

/** An agent space that holds nothing, on a disk that may be full; and how many listen to what. */
function createParts(accountDir: string) {
  const parts = { isFull: true, listeners: new Set<unknown>() };
  const listen = (listener: unknown) => {
    parts.listeners.add(listener);
    return () => void parts.listeners.delete(listener);
  };
  const tx = { object: () => undefined, rollBackWith: (result: unknown) => result };
  const services = {
    space: {
      id: "space",
      engine: { object: () => undefined, write: async (run: (on: typeof tx) => unknown) => run(tx) },
    },
    bundles: { ensure: async ({ id }: { id: string }) => ({ bundle: { rootId: `root of ${id}` } }) },
    types: { create: async ({ xKey }: { xKey: string }) => ({ id: xKey }) },
    datasets: { listing: () => [], add: async () => "dataset" },
    properties: { add: async () => ({}) },
    records: {
      modify: async () => {
        if (parts.isFull) throw new Error("the disk is full");
      },
    },
  };
  const devices = {
    list: () => ({ devices: [{ peerId: "me", apps: { agent: {} } }], active: { agent: "me" }, self: "me" }),
  };
  const config = { "runtime.secrets": {}, "runtime.http.allow": [], "runtime.maxMemoryMiB": 64 };
  const deps = {
    accountDir,
    accountId: "A",
    peerId: "me",
    config,
    env: {},
    clock: { nowMs: Date.now },
    log: silentLog,
    devices,
    events: { observe: listen },
    processes: {},
    spaceEvents: { on: (_name: string, listener: unknown) => listen(listener) },
    ensureDerived: async () => ({ id: "space" }),
    space: async () => services,
    firstRound: async () => {},
    answer: async () => new Response(),
  } as unknown as RuntimeDeps;
  return { parts, deps };
}

test("a start that fails at its last step leaves nobody who listens, and can be made again", async () => {
  using dir = scratchDir("svc-running");
  const { parts, deps } = createParts(dir.path);
  const start = () => startRunning(deps, () => false);
  await expect(start()).rejects.toThrow("the disk is full");
  expect(parts.listeners.size).toBe(0);

  parts.isFull = false;
  const running = await start();
  expect([parts.listeners.size > 0, running.control.list()]).toEqual([true, []]);
  await running.close();
  expect(parts.listeners.size).toBe(0);
});
