/**
 * Stands between machines that do not hear each other: hears what each announces of the LAN link, announces the same here
 * with a port of its own, and carries what comes there to the machine, through a line that can misbehave. Argument: the
 * address to do it on. Says `ready`; then takes commands as JSON lines (`LanMiddleCommand`) and answers each with
 * `{id, result}`. Ends with its standard input.
 */
import { connect, createServer } from "node:net";
import createMdns, { type ResponseOutgoingPacket } from "multicast-dns";
import { createTcpLine, type LineFaults, type TcpLine } from "./tcp-line.ts";

export interface LanMiddleCommand {
  readonly id: number;
  /** The address of the machine to which the line leads. */
  readonly to: string;
  readonly fault: keyof LineFaults;
  readonly args: readonly unknown[];
}

const address = process.argv[2]!;
const SERVICE = "_svc-link._tcp.local";
const AGAIN_MS = 250;
const TTL_S = 120;
const lines = new Map<string, TcpLine>();
const portByName = new Map<string, number>();
const listening = new Set<string>();

const lineTo = (machine: string): TcpLine => {
  const line = lines.get(machine) ?? createTcpLine();
  lines.set(machine, line);
  return line;
};
const announcement = (name: string, port: number, ttl: number): ResponseOutgoingPacket => ({
  answers: [
    { name: SERVICE, type: "PTR", ttl, data: name },
    { name, type: "SRV", ttl, data: { port, target: name.replace(`.${SERVICE}`, ".local"), priority: 0, weight: 0 } },
  ],
});
const listenFor = (name: string, machine: string, port: number): void => {
  const line = lineTo(machine);
  const server = createServer((client) => line.carry(client, () => connect(port, machine)));
  server.listen(0, address, () => {
    const bound = server.address();
    if (bound === null || typeof bound === "string") throw new Error("no port");
    portByName.set(name, bound.port);
    mdns.respond(announcement(name, bound.port, TTL_S));
  });
};

const mdns = createMdns({ interface: address, bind: "0.0.0.0", reuseAddr: true });
mdns.on("response", (packet, from) => {
  if (from.address === address) return;
  for (const record of [...(packet.answers ?? []), ...(packet.additionals ?? [])]) {
    if (record.type !== "SRV" || !record.name.endsWith(SERVICE)) continue;
    const { name, ttl } = record;
    const port = portByName.get(name);
    if (ttl === 0 && port !== undefined) {
      portByName.delete(name);
      mdns.respond(announcement(name, port, 0));
    } else if (ttl !== 0 && !listening.has(name)) {
      listening.add(name);
      listenFor(name, from.address, record.data.port);
    }
  }
});
mdns.on("ready", () => {
  setInterval(() => {
    mdns.query([{ name: SERVICE, type: "PTR" }]);
    for (const [name, port] of portByName) mdns.respond(announcement(name, port, TTL_S));
  }, AGAIN_MS);
  console.log("ready");
});

for await (const text of console) {
  const { id, to, fault, args } = JSON.parse(text) as LanMiddleCommand;
  const act = lineTo(to)[fault] as (...args: readonly unknown[]) => unknown;
  console.log(JSON.stringify({ id, result: act(...args) ?? null }));
}
process.exit(0);
