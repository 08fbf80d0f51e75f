/**
 * What passes on a LAN, and what a stranger on it gets. The servers find each other on this machine's loopback by
 * multicast; every packet of theirs is captured, as anybody on the LAN could.
 */

import { expect } from "bun:test";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { decodeInviteToken } from "../../../src/acl/record/invite-token.ts";
import { inviteLinkKeyOf, linkKeyOf } from "../../../src/acl/record/space-keys.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { deriveAccountSecret } from "../../../src/crypto/account-keys.ts";
import { sharedSecret } from "../../../src/crypto/box.ts";
import { deriveKey } from "../../../src/crypto/derive.ts";
import { publicKeyOfSeed } from "../../../src/crypto/private-key.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { createDeviceCertificate } from "../../../src/sync/lan/device-certificate.ts";
import { dialPeer } from "../../../src/sync/lan/link-socket.ts";
import { openPeerLink, type PeerLink } from "../../../src/sync/lan/peer-link.ts";
import type { LinkKeys } from "../../../src/sync/lan/space-tokens.ts";
import {
  decodeItems,
  decodePullReply,
  decodeState,
  encodePullRequest,
  encodeStateRequest,
  encodeWants,
} from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import { filesBelow } from "../../support/files-below.ts";
import { readKeysIn } from "../../support/hostile/former-reader.ts";
import { leaksIn, missedPlants, openCaptures } from "../../support/hostile/leak-search.ts";
import { freePort } from "../../support/network/free-port.ts";
import { canCapturePackets, capturePackets } from "../../support/network/packet-capture.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, spacesOf, startDevice } from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";
import { skipGroupUnless } from "../../support/skip.ts";
import { type KnownAccount, knownAccount } from "../../support/worlds/known-account.ts";
import { liveTogether } from "../../support/worlds/shared-life.ts";

const LONG_MS = 150_000;
const WAIT_MS = 60_000;
const MDNS_PORT = 5353;

/** Everything that a server says to somebody who dials it and shows keys of its own. */
async function dialAs(
  account: KnownAccount,
  port: number,
  keys: LinkKeys,
): Promise<{ link?: PeerLink; heard: Buffer }> {
  const seed = randomBytes(32);
  const certificate = createDeviceCertificate(seed);
  const socket = await dialPeer(certificate, "127.0.0.1", port);
  const heard: Buffer[] = [];
  socket.on("data", (bytes: Buffer) => void heard.push(Buffer.from(bytes)));
  const identity = { peerId: certificate.peerId, account: createSigner(account.seed) };
  const events = {
    ...{ request: () => undefined, notice: () => undefined, spacesChanged: () => {}, closed: () => {} },
    afford: () => Promise.resolve(),
  };
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const link = await openPeerLink(socket, "dialler", identity, () => keys, events).catch(() => undefined);
  // What else it may say comes before it closes, or before it answers.
  if (link) await link.request("nothing", new Uint8Array(0)).catch(() => undefined);
  else await closed;
  return { ...(link ? { link } : {}), heard: Buffer.concat(heard) };
}

skipGroupUnless(canCapturePackets(), "packets cannot be captured here")("what passes on a LAN", () => {
  rule(
    "[SYNC-9] packets of accounts that share a space, multicast among them, tell nothing; nor do servers to strangers",
    async () => {
      const accounts = { owner: await knownAccount(), other: await knownAccount(), stranger: await knownAccount() };
      const ports = { owner: await freePort(), other: await freePort(), stranger: await freePort() };
      using capture = capturePackets([MDNS_PORT, ...Object.values(ports)]);
      using strangerRoot = scratchDir("svc-stranger");
      const start = (name: keyof typeof ports, more: object = {}): Promise<Device> =>
        startDevice({
          lan: true,
          mnemonic: accounts[name].mnemonic,
          env: { SVC_P2P_PORT: String(ports[name]), SVC_P2P_ENABLED: "true" },
          ...more,
        });
      await using stranger = await start("stranger", { dataDir: strangerRoot.path });
      const own = await createSpace(stranger.server.client);
      await using owner = await start("owner");
      using otherRoot = scratchDir("svc-other");
      let other = await start("other", { dataDir: otherRoot.path });
      await using _other = { [Symbol.asyncDispose]: () => other[Symbol.asyncDispose]() };
      const life = await liveTogether({ owner, other, inboxes: false });
      const spaceId = life.space.id as SpaceId;
      const base = `/v1/spaces/${spaceId}`;
      await other.server.stop();
      const heldKeys = await readKeysIn(otherRoot.path, accounts.other, spaceId);
      expect(heldKeys).toHaveLength(1);
      other = await start("other", { dataDir: otherRoot.path });
      await owner.server.client.post(`${base}/acl/remove`, { identities: [other.accountId] }, 204);
      await until(async () => (await spacesOf(other)).every(({ id }) => id !== life.space.id), "the removal", WAIT_MS);
      await life.write("after the removal");

      // A stranger's server: no link, nothing kept, nothing shown.
      const { client } = stranger.server;
      const p2p = await client.get<{ peers: unknown[]; state: string }>("/v1/debug/p2p");
      expect(p2p).toMatchObject({ listenerStarted: true, state: "notconnected", peers: [] });
      expect((await spacesOf(stranger)).map(({ id }) => id)).toEqual([own.id]);
      const shown = await Promise.all(
        ["/v1/spaces?status=all", "/v1/identities", "/v1/debug/p2p"].map(
          async (path) => (await client.request("GET", path)).text,
        ),
      );
      const has = [...shown, stranger.server.stderr()].map((text) => Buffer.from(text));
      expect(leaksIn(openCaptures([...has, ...filesBelow(strangerRoot.path)]), life.secrets)).toEqual([]);

      // A stranger that dials hears nothing but noise.
      const strangerKeys = { own: deriveAccountSecret(accounts.stranger.seed, "p2p"), spaces: [] };
      const strange = await dialAs(accounts.stranger, ports.owner, strangerKeys);
      expect(strange.link).toBeUndefined();
      expect(strange.heard.length).toBeGreaterThan(16);
      expect(leaksIn(openCaptures([strange.heard]), life.secrets)).toEqual([]);

      // The removed member with all that it ever held.
      const token = decodeInviteToken(String(life.secrets["invite token"]));
      const former: LinkKeys = {
        own: deriveAccountSecret(accounts.other.seed, "p2p"),
        spaces: [
          ...heldKeys.map((key) => ({ spaceId, key: linkKeyOf(spaceId, key) })),
          {
            spaceId,
            key: deriveKey(sharedSecret(accounts.other.seed, accounts.owner.signer.publicKey), "link-pair", spaceId),
          },
          { spaceId, key: inviteLinkKeyOf(spaceId, publicKeyOfSeed(token.seed)) },
        ],
      };
      const { link } = await dialAs(accounts.other, ports.owner, former);
      expect(link).toBeDefined(); // the invite it came by still stands
      await using _closing = { [Symbol.asyncDispose]: async () => link?.close("done") };
      const nothing = new Uint8Array(32);
      const state = decodeState(
        await link!.request(
          SYNC_KINDS.state,
          encodeStateRequest({ space: spaceId, aclHead: nothing, pending: nothing, digest: nothing }),
        ),
      );
      expect(state).toMatchObject({ known: true, content: false, vector: [] });
      const pull = encodePullRequest({ space: spaceId, vector: [], cursor: 0, chains: [], held: [] });
      expect(decodePullReply(await link!.request(SYNC_KINDS.pull, pull)).changes).toEqual([]);
      const wants = encodeWants(spaceId, [life.secrets["object digest"] as Uint8Array]);
      expect(decodeItems(await link!.request(SYNC_KINDS.wants, wants))).toEqual([]);

      // The packets.
      const streams = capture.streams();
      const datagrams = capture.datagrams();
      expect(datagrams.filter((bytes) => bytes.includes("_svc-link")).length).toBeGreaterThan(2);
      expect(streams.reduce((sum, { length }) => sum + length, 0)).toBeGreaterThan(20_000);
      expect(leaksIn(openCaptures([...streams, ...datagrams]), life.secrets)).toEqual([]);
      expect(missedPlants(life.secrets, datagrams[0]!)).toEqual([]);

      // What is sent in clear over the same ways is found.
      const control = { datagram: "a canary that sings in a datagram", stream: "a canary that sings in a stream" };
      const socket = createSocket("udp4");
      await new Promise<void>((done) => socket.bind(0, "127.0.0.1", done));
      socket.setMulticastInterface("127.0.0.1");
      await new Promise<void>((done) => socket.send(control.datagram, MDNS_PORT, "224.0.0.251", () => done()));
      socket.close();
      const plain = connect(ports.owner, "127.0.0.1");
      plain.on("error", () => {}); // it is refused
      plain.end(control.stream);
      const heard = () => leaksIn([...capture.streams(), ...capture.datagrams()], control);
      await until(() => heard().length === 2, "the control in the capture");
      expect(heard()).toEqual(["datagram (raw)", "stream (raw)"]);
    },
    LONG_MS,
  );
});
