/**
 * One LAN peer as a process of its own. The argument is JSON: the space key it holds, and where to look for peers; it
 * knows nothing else of anybody. Says what happens in JSON lines, answers `echo` requests, asks whom it meets, ends
 * with its standard input.
 */
import { hexToBytes, utf8ToBytes } from "../../../src/base/bytes.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { startLinkManager } from "../../../src/sync/lan/link-manager.ts";
import type { SilenceLimits } from "../../../src/sync/lan/message-channel.ts";
import type { PeerLink } from "../../../src/sync/lan/peer-link.ts";

export interface LinkProcessOptions {
  readonly spaceKey: string;
  /** Addresses of interfaces; all of the LAN by default. */
  readonly addresses?: readonly string[];
  readonly mdnsPort?: number;
  readonly silence?: SilenceLimits;
}

const options = JSON.parse(process.argv[2] ?? "{}") as LinkProcessOptions;
const say = (line: object) => console.log(JSON.stringify(line));
const greet = async (link: PeerLink) => {
  const answer = await link.request("echo", utf8ToBytes("hello"));
  say({ event: "echoed", peerId: link.peerId, text: Buffer.from(answer).toString() });
};
const { addresses } = options;
const manager = await startLinkManager({
  deviceSeed: randomBytes(32),
  account: createSigner(randomBytes(32)),
  log: silentLog,
  ...(options.mdnsPort === undefined ? {} : { mdnsPort: options.mdnsPort }),
  ...(options.silence ? { silence: options.silence } : {}),
  ...(addresses ? { discoverOn: () => addresses } : {}),
  port: {
    keys: () => ({
      own: randomBytes(32),
      spaces: [{ spaceId: "space" as SpaceId, key: hexToBytes(options.spaceKey)! }],
    }),
    connected: (link) => {
      say({ event: "connected", peerId: link.peerId, spaces: link.sharedSpaces() });
      greet(link).catch((error: Error) => say({ event: "failed", message: error.message }));
    },
    disconnected: (link, reason) => say({ event: "disconnected", peerId: link.peerId, reason }),
    spacesChanged: () => {},
  },
});
manager.onRequest("echo", async (_link, body) => body);
say({ event: "started", peerId: manager.debug().peerId });
for await (const _ of process.stdin) {
  // nothing is expected: the end is the signal
}
await manager[Symbol.asyncDispose]();
