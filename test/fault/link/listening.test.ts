/** What a LAN is for a device that may not listen on it, and what it says of that. */
import { expect, spyOn, test } from "bun:test";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type Log, silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { startLinkManager } from "../../../src/sync/lan/link-manager.ts";
import { sharedSpace, useLinkPeers } from "../../support/network/link-peers.ts";
import { until } from "../../support/server/client.ts";

const { keep, join, mdnsPort } = useLinkPeers();

test("[SYNC-1] a port that is taken is told in the state and the log, and stops nothing else", async () => {
  const a = await join([sharedSpace]);
  const logged: string[] = [];
  const log: Log = { ...silentLog, warn: (message) => void logged.push(message), child: () => log };
  const manager = keep(
    await startLinkManager({
      deviceSeed: randomBytes(32),
      account: createSigner(randomBytes(32)),
      log,
      host: "127.0.0.1",
      listenPort: a.manager.debug().port,
      mdnsPort: mdnsPort(),
      discoverOn: () => [],
      port: { keys: () => a.keys, connected: () => {}, disconnected: () => {}, spacesChanged: () => {} },
    }),
  );
  expect(manager.state()).toBe("notpossible");
  expect(manager.debug()).toMatchObject({ listenerStarted: false, possibility: "notpossible", port: 0 });
  expect(logged[0]).toContain("p2p.port");
});

test("[SYNC-1] a LAN on which the system lets nobody listen to multicast is restricted, until it does", async () => {
  const blocker = createSocket({ type: "udp4", reuseAddr: false });
  blocker.bind(0, "0.0.0.0");
  await once(blocker, "listening");
  const mdnsPort = blocker.address().port;
  using intervals = spyOn(globalThis, "setInterval");
  let addresses = ["127.0.0.1"];
  const { manager } = await join([sharedSpace], { mdnsPort, discoverOn: () => addresses });
  const lookAgain = intervals.mock.calls.find(([, ms]) => ms === 3_000)![0] as () => void;
  const states = () => [manager.state(), manager.debug().possibility, manager.debug().state];
  await until(() => manager.state() === "restricted", "the refusal of the system");
  lookAgain();
  // It is tried again, and nothing else is said until one is let listen.
  expect(states()).toEqual(["restricted", "restricted", "restricted"]);
  addresses = [];
  lookAgain();
  expect(states()).toEqual(["notpossible", "notpossible", "notpossible"]);
  addresses = ["127.0.0.1"];
  lookAgain();
  await until(() => manager.state() === "restricted", "the refusal of the system");
  blocker.close();
  await once(blocker, "close");
  await until(() => {
    lookAgain();
    return manager.state() === "notconnected";
  }, "multicast");
  expect(states()).toEqual(["notconnected", "possible", "notconnected"]);
  const other = await join([sharedSpace], { mdnsPort });
  await until(() => manager.state() === "connected" && other.manager.state() === "connected", "a link");
});
