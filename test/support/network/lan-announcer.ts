/**
 * Announces a peer of the LAN link at an address (the argument), where it listens and says `dialled` for every
 * connection. Ends with its standard input.
 */
import { createServer } from "node:net";
import createMdns from "multicast-dns";

const address = process.argv[2]!;
const SERVICE = "_svc-link._tcp.local";
const AGAIN_MS = 300;
const server = createServer((socket) => {
  console.log("dialled");
  socket.on("error", () => undefined); // whoever dialled may be gone
  socket.destroy();
});
server.listen(0, address, () => {
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  const instance = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString("hex");
  const name = `${instance}.${SERVICE}`;
  const target = `${instance}.local`;
  const mdns = createMdns({ interface: address, bind: "0.0.0.0", reuseAddr: true });
  const data = { port: bound.port, target, priority: 0, weight: 0 };
  const announce = () =>
    mdns.respond({
      answers: [
        { name: SERVICE, type: "PTR", ttl: 120, data: name },
        { name, type: "SRV", ttl: 120, data },
      ],
    });
  mdns.on("ready", () => {
    announce();
    setInterval(announce, AGAIN_MS);
    console.log("announced");
  });
});
for await (const _ of process.stdin) {
  // nothing is expected: the end is the signal
}
process.exit(0);
