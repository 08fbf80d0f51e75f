/** What an attack costs a running server: disk, memory, processor time, and the longest it kept its callers waiting. */
import { readFileSync } from "node:fs";
import type { Device } from "../server/devices.ts";
import { processorMsOf, spaceBytesOf } from "./besieged.ts";
import { memoryOf } from "./hostile-peer.ts";

const MIB = 1 << 20;
const SAMPLE_MS = 10;

export interface AttackCost {
  readonly diskMiB: number;
  readonly memoryMiB: number;
  readonly processorS: number;
  /** Of a processor on the main thread while it answered one request. A turn of its loop may be a pause between two longer. */
  readonly longestTurnS: number;
}

export interface WatchedServer extends AsyncDisposable {
  /** Since it is watched. */
  cost(): AttackCost;
}

/** Processor time that the main thread of a server has used, milliseconds. */
function mainThreadMsOf({ server }: Device): number {
  const [ranNs] = readFileSync(`/proc/${server.pid}/task/${server.pid}/schedstat`, "utf8").split(" ");
  return Number(ranNs) / 1e6;
}

/** Asks a server whether it is well again and again, and measures what it does before it answers. */
export function watchServer(device: Device, spaceId: string): WatchedServer {
  const disk = spaceBytesOf(device, spaceId);
  const memory = memoryOf(device);
  const processorMs = processorMsOf(device);
  let peak = memory;
  let longestTurnMs = 0;
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const before = mainThreadMsOf(device);
      await device.server.client.get("/v1/health");
      longestTurnMs = Math.max(longestTurnMs, mainThreadMsOf(device) - before);
      peak = Math.max(peak, memoryOf(device));
      await Bun.sleep(SAMPLE_MS);
    }
  })();
  return {
    cost: () => ({
      diskMiB: (spaceBytesOf(device, spaceId) - disk) / MIB,
      memoryMiB: (peak - memory) / MIB,
      processorS: (processorMsOf(device) - processorMs) / 1_000,
      longestTurnS: longestTurnMs / 1_000,
    }),
    async [Symbol.asyncDispose]() {
      isOver = true;
      await asking;
    },
  };
}
