/**
 * Calls to a push node, and its answers, made by somebody who knows their structure and signs what he likes: the node answers
 * with what its protocol lists, fails at nothing and keeps no more than its quotas; a server takes an answer as its schema
 * says, or not at all. `FUZZ_CASES` says how many, `SEED` repeats a run.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { bytesToBase58 } from "../../src/base/base58.ts";
import { bytesToBase64Url, bytesToHex, utf8ToBytes } from "../../src/base/bytes.ts";
import type { CborValue } from "../../src/base/dag-cbor.ts";
import { silentLog } from "../../src/base/log.ts";
import {
  ChallengeReply,
  DeliveryReply,
  DevicesReply,
  MessageReply,
  NoReply,
  PUSH_HEADERS,
  PUSH_NODE_ERRORS,
  PUSH_PATHS,
  TopicsPage,
} from "../../src/protocol/push-node.ts";
import { createNodeCalls, NodeFault } from "../../src/push-link/node-calls.ts";
import { messageStatement, requestStatement, topicsStatement } from "../../src/push-link/statements.ts";
import { createAccountProof } from "../../src/push-node/account-proof.ts";
import { createNodeApp } from "../../src/push-node/node-app.ts";
import { createPushService } from "../../src/push-node/service.ts";
import { createSqliteState } from "../../src/push-node/sqlite-state.ts";
import type { PushState } from "../../src/push-node/state.ts";
import { fuzzCases } from "../support/hostile/fuzz-cases.ts";
import { bytesFrom, mutateBytes, mutateCbor } from "../support/hostile/mutate.ts";
import { createRng, freshSeed, type Rng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { memoryDir, type ScratchDir, scratchDir } from "../support/scratch.ts";
import { createAccount } from "../support/worlds/acl-world.ts";

const firstSeed = freshSeed("push-fuzz");
const AUDIENCE = "http://node.example";
const PROVIDER_SAID = { kind: "accepted" } as const;
/** What a run of all cases may leave behind. */
const LEFT_BYTES = 300 << 20;
const QUOTAS = { devicesPerAccount: 4, topicsPerAccount: 20, pendingDeliveries: 50 };
const NO_RATES = {
  ...{ requestsPerSecond: 1e9, requestBurst: 1e9, addressRequestsPerSecond: 1e9, addressRequestBurst: 1e9 },
  ...{ newAccountsPerHour: 1e9, recipientsPerMessage: 10, recipientsPerHour: 1e9 },
};

const accounts = Array.from({ length: 3 }, createAccount);
const space = createAccount().signer;
const spaceKey = bytesToBase58(space.publicKey);
const hex = (rng: Rng, bytes: number): string => bytesToHex(bytesFrom(rng, bytes));
type Body = { [field: string]: CborValue };

/** A good call of an account's: its path, its body, and the body signed anew for the space after it was spoilt. */
function anyCall(rng: Rng, account: string): { path: string; body: Body; sign: (body: Body) => Body } {
  const topics = Array.from({ length: rng.int(1, 3) }, () => rng.pick(["chats", account, `chats/${hex(rng, 32)}`]));
  const device = rng.pick(["a", "b", "c", "d", "e", "f"]).repeat(32);
  const asIs = (body: Body): Body => body;
  const delivery = {
    ...{ id: hex(rng, 16), kind: rng.pick(["message", "read"]), spaceKey, chat: hex(rng, 32), keyId: hex(rng, 32) },
    sealed: bytesFrom(rng, 30).toBase64(),
  };
  const token = { platform: rng.pick(["ios", "android"]), token: hex(rng, 4), registeredMs: 5 };
  const signTopics = (body: Body): Body => {
    const named = (body["add"] as Body[])[0]!;
    const statement = topicsStatement(AUDIENCE, named["spaceKey"] as string, account, named["topics"] as string[]);
    return { ...body, add: [{ ...named, signature: bytesToBase64Url(space.sign("push-topics", statement)) }] };
  };
  const signMessage = (body: Body): Body => {
    const statement = messageStatement(AUDIENCE, account, body as never);
    return { ...body, signature: bytesToBase64Url(space.sign("push-message", statement)) };
  };
  return rng.pick<() => ReturnType<typeof anyCall>>([
    () => ({ path: PUSH_PATHS.challenge, body: { account }, sign: asIs }),
    () => ({ path: PUSH_PATHS.token, body: { ...token, device }, sign: asIs }),
    () => ({ path: PUSH_PATHS.tokenDrop, body: { device }, sign: asIs }),
    () => ({ path: PUSH_PATHS.devices, body: {}, sign: asIs }),
    () => ({ path: PUSH_PATHS.topics, body: { add: [{ spaceKey, topics }] }, sign: signTopics }),
    () => ({ path: PUSH_PATHS.topics, body: { drop: [{ spaceKey, topics }] }, sign: asIs }),
    () => ({ path: PUSH_PATHS.topicsList, body: { after: { spaceKey, topic: "chats" } }, sign: asIs }),
    () => ({ path: PUSH_PATHS.messages, body: { ...delivery, topics, device }, sign: signMessage }),
    () => ({ path: PUSH_PATHS.deliveries, body: { ...delivery, ...token }, sign: asIs }),
  ])();
}

/** A body with one thing in it another, most often signed by who holds the space's key. */
function spoilt(rng: Rng, { body, sign }: ReturnType<typeof anyCall>): Uint8Array {
  const other = rng.chance(0.3) ? body : (mutateCbor(rng, body) as Body);
  let signed = other;
  try {
    if (rng.chance(0.9)) signed = sign(other);
  } catch {
    // What is left of it cannot be signed: it is sent as it is.
  }
  const last = rng.chance(0.2) ? mutateCbor(rng, signed) : signed;
  const text = rng.chance(0.05) ? "[".repeat(rng.pick([10, 5_000, 200_000])) : JSON.stringify(last);
  const bytes = utf8ToBytes(text);
  return rng.chance(0.1) ? mutateBytes(rng, bytes) : bytes;
}

describe("calls to a push node", () => {
  const errors: unknown[] = [];
  let directory: ScratchDir;
  let state: PushState;
  let app: ReturnType<typeof createNodeApp>;
  let proof: ReturnType<typeof createAccountProof>;
  let nowMs = 1_000_000;

  beforeAll(async () => {
    directory = scratchDir("push-fuzz", memoryDir());
    state = await createSqliteState(join(directory.path, "node.db"));
    const deps = { state, secret: await state.secret(), audience: () => AUDIENCE, clock: { nowMs: () => nowMs } };
    const limits = { ...QUOTAS, ...NO_RATES };
    const provider = { name: "test", send: async () => PROVIDER_SAID, close: async () => {} };
    const service = createPushService({
      ...{ ...deps, limits, kick: () => {}, downstreams: new Set([accounts[0]!.id]) },
      providers: { ios: provider, android: undefined },
    });
    proof = createAccountProof(deps);
    const log = { ...silentLog, error: (_message: string, fields?: object) => void errors.push(fields) };
    app = createNodeApp({ service, proof, limits, clock: deps.clock, log, behindProxy: false });
  });
  afterAll(async () => {
    await state.close();
    directory[Symbol.dispose]();
  });

  const request = (rng: Rng): Request => {
    const { id, signer } = rng.pick(accounts);
    const call = anyCall(rng, id);
    const bytes = spoilt(rng, call);
    const path = rng.chance(0.03) ? rng.pick(["/", "/v1/none", "//", "/v1/token/.."]) : call.path;
    const challenge = rng.chance(0.05) ? bytesToBase64Url(bytesFrom(rng, 40)) : proof.challengeFor(id);
    const statement = requestStatement({ audience: AUDIENCE, path, account: id, challenge, body: bytes });
    const proven = signer.sign("push-request", statement);
    const headers = {
      [PUSH_HEADERS.account]: rng.chance(0.03) ? rng.pick(["", "A", "x".repeat(3_000)]) : id,
      [PUSH_HEADERS.challenge]: challenge,
      [PUSH_HEADERS.signature]: bytesToBase64Url(rng.chance(0.05) ? mutateBytes(rng, proven) : proven),
    };
    return new Request(AUDIENCE + path, { method: "POST", headers, body: bytes as Uint8Array<ArrayBuffer> });
  };

  const cases = fuzzCases(0.004);
  rule(
    `[PUSH-6] ${cases} spoilt calls are done or refused by the node's list, and kept within its quotas`,
    async () => {
      const rng = createRng(firstSeed).fork("calls");
      const before = process.memoryUsage().rss;
      const counts = new Map<number, number>();
      for (let i = 0; i < cases; i++) {
        nowMs += 1_000;
        const response = await app.fetch(request(rng), "192.0.2.1");
        const text = await response.text();
        counts.set(response.status, (counts.get(response.status) ?? 0) + 1);
        expect(errors).toEqual([]);
        if (response.ok) continue;
        const { error } = JSON.parse(text) as { error: { code: keyof typeof PUSH_NODE_ERRORS; message: string } };
        expect(`${error.code} ${response.status}`).toBe(`${error.code} ${PUSH_NODE_ERRORS[error.code]?.status}`);
        expect(error.message.length).toBeLessThan(1_000);
      }
      for (const status of [200, 204, 400, 401, 403]) expect([status, counts.has(status)]).toEqual([status, true]);
      for (const { id } of accounts) {
        expect((await state.devicesOf(id)).length).toBeLessThanOrEqual(QUOTAS.devicesPerAccount);
        expect(await state.topicCount(id)).toBeLessThanOrEqual(QUOTAS.topicsPerAccount);
      }
      // A message is taken on while there is room: one more than fits may be on its way to ten devices.
      expect(await state.pending()).toBeLessThan(QUOTAS.pendingDeliveries + accounts.length * QUOTAS.devicesPerAccount);
      expect(process.memoryUsage().rss - before).toBeLessThan(LEFT_BYTES);
    },
    600_000,
  );
});

describe("answers of a push node", () => {
  let reply: () => Response = () => new Response();
  let node: Bun.Server<undefined>;
  beforeAll(() => {
    node = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => reply() });
  });
  afterAll(() => node.stop(true));

  const GOOD: readonly [TSchema, CborValue][] = [
    [ChallengeReply, { challenge: "c" }],
    [DevicesReply, { devices: [{ device: "a".repeat(32), platform: "ios" }] }],
    [TopicsPage, { topics: [{ spaceKey, topic: "chats" }], more: true }],
    [MessageReply, { devices: 3 }],
    [DeliveryReply, { kind: "later", delayMs: 1_000, everyone: true, reason: "busy" }],
    [DeliveryReply, { kind: "dead", certain: true, reason: "410" }],
    [DeliveryReply, PROVIDER_SAID],
  ];
  const anyResponse = (rng: Rng, good: CborValue): Response => {
    const body = rng.chance(0.3) ? good : mutateCbor(rng, good);
    const text = JSON.stringify(body);
    const headers = rng.chance(0.3)
      ? { "retry-after": rng.pick(["-1", "0", "9".repeat(400), "NaN", "1e308", "Thu, 01 Jan 1970 00:00:00 GMT"]) }
      : undefined;
    const status = rng.pick([200, 200, 200, 200, 401, 403, 429, 503]);
    const sent = rng.chance(0.2) ? Buffer.from(mutateBytes(rng, utf8ToBytes(text))).toString("latin1") : text;
    return new Response(sent, { status, ...(headers && { headers }) });
  };

  const cases = fuzzCases(0.001);
  rule(
    `[PUSH-6] ${cases} spoilt answers are taken as their schema says, or are faults with a bounded pause`,
    async () => {
      const rng = createRng(firstSeed).fork("answers");
      const [{ id, signer }] = accounts as [ReturnType<typeof createAccount>];
      let taken = 0;
      for (let i = 0; i < cases; i++) {
        const [schema, good] = rng.pick([...GOOD, [NoReply, ""] as const]);
        const isFirst = rng.chance(0.5);
        const calls = createNodeCalls({ url: node.url.origin, account: id, signer, timeoutMs: 5_000 });
        let asked = 0;
        reply = () => {
          const isChallenge = asked++ === 0;
          return isChallenge && !isFirst ? Response.json({ challenge: "c" }) : anyResponse(rng, good);
        };
        try {
          const value = await calls.post("/v1/any", schema, {});
          expect(Value.Check(schema, value)).toBe(true);
          taken++;
        } catch (error) {
          if (!(error instanceof NodeFault)) throw error;
          const { retryAfterMs = 1_000 } = error;
          expect(retryAfterMs >= 1_000 && retryAfterMs <= 60 * 60_000).toBe(true);
        }
      }
      expect(taken).toBeGreaterThan(0);
    },
    600_000,
  );
});
