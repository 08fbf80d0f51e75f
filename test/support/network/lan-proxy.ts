import { until } from "../server/client.ts";
import type { LanMiddleCommand } from "./lan-middle.ts";
import type { Lan, Machine } from "./machines.ts";
import type { LineFaults } from "./tcp-line.ts";

/** The line to a machine's servers, in another process. */
export type RemoteLine = {
  [Fault in keyof LineFaults]: (...args: Parameters<LineFaults[Fault]>) => Promise<ReturnType<LineFaults[Fault]>>;
};

const FAULTS: readonly (keyof LineFaults)[] = [
  "drop",
  "stall",
  "delay",
  "cutAfter",
  "corruptAfter",
  "sever",
  "block",
  "connections",
  "broken",
];

/** The one way between machines that are apart. */
export interface LanProxy {
  /** What passes to and from connections that a machine's servers take. */
  lineTo(machine: Machine): RemoteLine;
}

/** Puts a machine of its own between those of the LAN that are apart. It is gone with the LAN. */
export async function startLanProxy(lan: Lan): Promise<LanProxy> {
  const middle = await lan.machine();
  const script = await middle.script("lan-middle.ts", middle.address);
  let commands = 0;
  const send = async (to: string, fault: keyof LineFaults, args: readonly unknown[]): Promise<unknown> => {
    const id = commands++;
    script.say(JSON.stringify({ id, to, fault, args } satisfies LanMiddleCommand));
    let answer: { id: number; result: unknown } | undefined;
    await until(() => {
      const text = script.lines().find((line) => line.startsWith(`{"id":${id},`));
      if (text !== undefined) answer = JSON.parse(text) as { id: number; result: unknown };
      return answer !== undefined;
    }, `the middle to ${fault}`);
    return answer!.result;
  };
  return {
    lineTo: ({ address }) =>
      Object.fromEntries(
        FAULTS.map((fault) => [fault, (...args: unknown[]) => send(address, fault, args)]),
      ) as RemoteLine,
  };
}
