/** An account and a space as a push node knows them, without a server behind them. */
import { createHash } from "node:crypto";
import { bytesToBase58 } from "../../../src/base/base58.ts";
import { bytesToBase64Url } from "../../../src/base/bytes.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { createSigner, type Signer } from "../../../src/crypto/sign.ts";
import { DevicesReply, MessageReply, NoReply, PUSH_PATHS } from "../../../src/protocol/push-node.ts";
import { createNodeCalls, type NodeCalls } from "../../../src/push-link/node-calls.ts";
import { messageStatement, topicsStatement } from "../../../src/push-link/statements.ts";

const hex = (text: string, length: number): string => createHash("sha256").update(text).digest("hex").slice(0, length);
const signerOf = (name: string): Signer => createSigner(new Uint8Array(createHash("sha256").update(name).digest()));

export interface PushSpaceKey {
  readonly spaceKey: string;
  readonly signer: Signer;
}
export function spaceKeyOf(name: string): PushSpaceKey {
  const signer = signerOf(`space ${name}`);
  return { spaceKey: bytesToBase58(signer.publicKey), signer };
}

interface Sending {
  readonly id?: string;
  readonly kind?: "message" | "read";
  readonly topics?: string[];
  readonly chat?: string;
  readonly device?: string;
  readonly sealed?: string;
  /** Who signs for the space; the space unless a test says otherwise. */
  readonly by?: Signer;
}

export interface PushAccount {
  readonly id: string;
  readonly calls: NodeCalls;
  readonly signer: Signer;
  register(platform: "ios" | "android", token: string, device?: string, registeredMs?: number): Promise<void>;
  revoke(device?: string): Promise<void>;
  watch(space: PushSpaceKey, topics: string[], by?: Signer): Promise<void>;
  unwatch(space: PushSpaceKey, topics: string[]): Promise<void>;
  send(space: PushSpaceKey, sending?: Sending): Promise<{ devices: number }>;
}

let sent = 0;
export const deviceTag = (name: string): string => hex(name, 32);

export function pushAccount(url: string, name: string): PushAccount {
  const signer = signerOf(`account ${name}`);
  const id = accountIdOf(signer.publicKey);
  const calls = createNodeCalls({ url, account: id, signer, timeoutMs: 10_000 });
  return {
    id,
    calls,
    signer,
    register: (platform, token, device = "phone", registeredMs = Date.now()) =>
      calls.post(PUSH_PATHS.token, NoReply, { platform, token, device: deviceTag(device), registeredMs }),
    revoke: (device = "phone") => calls.post(PUSH_PATHS.tokenDrop, NoReply, { device: deviceTag(device) }),
    watch: ({ spaceKey, signer: own }, topics, by = own) => {
      const statement = topicsStatement(calls.audience, spaceKey, id, topics);
      const signature = bytesToBase64Url(by.sign("push-topics", statement));
      return calls.post(PUSH_PATHS.topics, NoReply, { add: [{ spaceKey, topics, signature }] });
    },
    unwatch: ({ spaceKey }, topics) => calls.post(PUSH_PATHS.topics, NoReply, { drop: [{ spaceKey, topics }] }),
    send({ spaceKey, signer: own }, sending = {}) {
      const { kind = "message", topics = ["chats"], chat = "general", device = "phone", by = own } = sending;
      const message = {
        id: sending.id ?? hex(`message ${sent++} ${name}`, 32),
        ...{ kind, spaceKey, topics, chat: hex(chat, 64), device: deviceTag(device), keyId: hex("key", 64) },
        sealed: sending.sealed ?? Buffer.from("sealed bytes").toString("base64"),
      };
      const statement = messageStatement(calls.audience, id, message);
      return calls.post(PUSH_PATHS.messages, MessageReply, {
        ...message,
        signature: bytesToBase64Url(by.sign("push-message", statement)),
      });
    },
  };
}

/** How many devices a node knows of an account. */
export const devicesOf = async ({ calls }: PushAccount): Promise<number> =>
  (await calls.post(PUSH_PATHS.devices, DevicesReply, {})).devices.length;
