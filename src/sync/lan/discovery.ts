import { networkInterfaces } from "node:os";
import createMdns, { type MulticastDNS, type ResponseOutgoingPacket, type ResponsePacket } from "multicast-dns";
import { bytesToHex } from "../../base/bytes.ts";
import type { Log } from "../../base/log.ts";
import { randomBytes } from "../../base/random.ts";
import { isLanAddress } from "./lan-address.ts";

/**
 * Finding peers by multicast DNS (RFC 6762, 6763) on every LAN interface, loopback among them, so that two servers on one
 * machine meet without sharing anything else. An announcement holds a random instance name, made anew at every start,
 * and a port; nothing about who it is. The address is where the packet came from.
 */

export interface Sighting {
  /** Who it is until its next start; random. */
  readonly instance: string;
  readonly address: string;
  readonly port: number;
}

export interface DiscoveryOptions {
  /** The port of our listener. */
  readonly port: number;
  readonly log: Log;
  readonly onSeen: (sighting: Sighting) => void;
  /** It said that it stops. */
  readonly onGone: (instance: string) => void;
  /** IPv4 addresses of the interfaces to use; for tests. Those of the LAN by default. */
  readonly addresses?: () => readonly string[];
  /** UDP port; for tests. */
  readonly mdnsPort?: number;
}

/** `restricted`: the system lets nobody listen to multicast here. */
type DiscoveryState = "working" | "no-interface" | "restricted";

export interface Discovery extends AsyncDisposable {
  readonly instance: string;
  state(): DiscoveryState;
  /** Asks now who is there. */
  query(): void;
}

const SERVICE = "_svc-link._tcp.local";
const TTL_S = 120;
const INTERFACE_CHECK_MS = 3000;
/** After the start, then every minute. */
const QUERY_AT_MS = [0, 500, 2000, 8000];
const QUERY_EVERY_MS = 60_000;
const RECORDS_MAX = 64;
const INSTANCE = /^([0-9a-f]{16})\._svc-link\._tcp\.local$/;

export function createDiscovery(options: DiscoveryOptions): Discovery {
  const { log } = options;
  const instance = bytesToHex(randomBytes(8));
  const name = `${instance}.${SERVICE}`;
  const sockets = new Map<string, MulticastDNS>();
  /** Addresses whose sockets listen. */
  const listening = new Set<string>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  /** The last socket that was opened was refused, and none has got ready since. */
  let restricted = false;

  const announcement = (ttl: number): ResponseOutgoingPacket => ({
    answers: [
      { name: SERVICE, type: "PTR", ttl, data: name },
      { name, type: "SRV", ttl, data: { port: options.port, target: `${instance}.local`, priority: 0, weight: 0 } },
    ],
  });

  const onResponse = (packet: ResponsePacket, from: string) => {
    if (!isLanAddress(from)) return;
    const records = [...(packet.answers ?? []), ...(packet.additionals ?? [])].slice(0, RECORDS_MAX);
    for (const record of records) {
      if (record.type !== "SRV") continue;
      const seen = INSTANCE.exec(record.name)?.[1];
      if (seen === undefined || seen === instance) continue;
      const port = record.data?.port;
      if (record.ttl === 0) options.onGone(seen);
      else if (Number.isInteger(port) && port > 0 && port < 65_536)
        options.onSeen({ instance: seen, address: from, port });
    }
  };

  const open = (address: string) => {
    const mdnsPort = options.mdnsPort === undefined ? {} : { port: options.mdnsPort };
    const socket = createMdns({ interface: address, bind: "0.0.0.0", reuseAddr: true, ...mdnsPort });
    sockets.set(address, socket);
    socket.on("query", (packet) => {
      if (packet.questions?.some((question) => question.name === SERVICE)) socket.respond(announcement(TTL_S));
    });
    socket.on("response", (packet, sender) => onResponse(packet, sender.address));
    socket.on("warning", (error) => log.debug("p2p: multicast", { address, err: error }));
    socket.on("error", (error) => {
      restricted = true;
      log.warn("p2p: no multicast here", { address, err: error });
      close(address);
    });
    socket.on("ready", () => {
      restricted = false;
      listening.add(address);
      socket.respond(announcement(TTL_S));
      ask(socket);
    });
  };
  const close = (address: string) => {
    sockets.get(address)?.destroy();
    sockets.delete(address);
    listening.delete(address);
  };
  const ask = (socket: MulticastDNS) => socket.query([{ name: SERVICE, type: "PTR" }]);
  const query = () => {
    for (const socket of sockets.values()) ask(socket);
  };
  const announce = (ttl: number) => {
    for (const socket of sockets.values()) socket.respond(announcement(ttl));
  };

  const checkInterfaces = () => {
    const present = new Set((options.addresses ?? lanInterfaceAddresses)());
    for (const address of sockets.keys()) if (!present.has(address)) close(address);
    if (present.size === 0) restricted = false;
    for (const address of present) if (!sockets.has(address)) open(address);
  };
  const every = (ms: number, work: () => void) => timers.add(setInterval(work, ms));

  checkInterfaces();
  for (const delay of QUERY_AT_MS) timers.add(setTimeout(query, delay));
  every(INTERFACE_CHECK_MS, checkInterfaces);
  every(QUERY_EVERY_MS, () => {
    announce(TTL_S);
    query();
  });

  return {
    instance,
    state() {
      if (listening.size > 0) return "working";
      // A socket that was refused is opened again and again: until one gets ready, nothing else holds.
      if (restricted) return "restricted";
      return sockets.size > 0 ? "working" : "no-interface";
    },
    query,
    [Symbol.asyncDispose]: async () => {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all([...sockets.values()].map((socket) => sayGoodbye(socket, announcement(0))));
      sockets.clear();
    },
  };
}

/** RFC 6762 § 10.1. Does not wait longer for a socket that never got ready. */
function sayGoodbye(socket: MulticastDNS, goodbye: ResponseOutgoingPacket): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(end, 200);
    function end() {
      clearTimeout(timer);
      socket.destroy(() => done());
    }
    socket.respond(goodbye, end);
  });
}

function lanInterfaceAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter((address) => address.family === "IPv4" && isLanAddress(address.address))
    .map((address) => address.address);
}
