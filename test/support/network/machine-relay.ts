/**
 * Carries connections from a Unix socket to a port of the network namespace that it runs in, so that tests reach servers
 * there. Arguments: the socket's path, the port. Says `ready`; ends with its standard input.
 */
import { connect, createServer } from "node:net";

const [path, port] = process.argv.slice(2);
const server = createServer((near) => {
  const far = connect(Number(port), "127.0.0.1");
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    from.pipe(to);
    from.on("error", () => to.destroy()); // a server that was killed: the other end shall see that
    from.on("close", () => to.destroy());
  }
});
server.listen(path, () => console.log("ready"));
for await (const _ of process.stdin) {
  // nothing is expected: the end is the signal
}
process.exit(0);
