import { afterEach, expect, test } from "bun:test";
import { accountIdOf } from "../crypto/account-id.ts";
import { createSigner } from "../crypto/sign.ts";
import { DeliveryReply, DevicesReply, MessageReply, NoReply, PUSH_PATHS, TopicsPage } from "../protocol/push-node.ts";
import { createNodeCalls, NodeFault } from "./node-calls.ts";

const signer = createSigner(new Uint8Array(32).fill(5));
let answer: (path: string) => Response;
const node = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(new URL(request.url).pathname) });
afterEach(() => node.unref());
const challenged = (reply: () => Response) => (path: string) =>
  path === PUSH_PATHS.challenge ? Response.json({ challenge: "c" }) : reply();
const calls = () =>
  createNodeCalls({ url: node.url.origin, account: accountIdOf(signer.publicKey), signer, timeoutMs: 5_000 });
const faultOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (value) => value,
    (error: unknown) => error,
  );

test("a page in the node's place, of a network that wants a login first, is a fault that passes", async () => {
  const page = () => new Response("<html>Log in</html>", { headers: { "content-type": "text/html" } });
  answer = page;
  const first = await faultOf(calls().post(PUSH_PATHS.messages, MessageReply, {}));
  answer = challenged(page);
  const second = await faultOf(calls().post(PUSH_PATHS.messages, MessageReply, {}));
  const third = await faultOf(calls().post(PUSH_PATHS.topics, NoReply, {}));
  for (const fault of [first, second, third]) {
    expect(fault).toBeInstanceOf(NodeFault);
    expect(fault).toMatchObject({ status: 0 });
  }
});

test.each([
  [MessageReply, { devices: -1 }],
  [DevicesReply, { devices: [null] }],
  [TopicsPage, { topics: {}, more: true }],
  [TopicsPage, { topics: [{ spaceKey: "x".repeat(40), topic: "x".repeat(201) }], more: true }],
  [DeliveryReply, { kind: "later", everyone: true, reason: "", delayMs: -1 }],
  [DeliveryReply, { kind: "later", everyone: true, reason: "", delayMs: 1e300 }],
  [DeliveryReply, { kind: "nothing that is known" }],
  [MessageReply, null],
])("an answer of another shape is none: %#", async (schema, reply) => {
  answer = challenged(() => Response.json(reply));
  expect(await faultOf(calls().post("/v1/any", schema, {}))).toMatchObject({ status: 0 });
});

test("whatever Retry-After says, the pause is between a second and an hour", async () => {
  for (const [header, pauseMs] of [
    ["0", 1_000],
    ["-5", 1_000],
    ["7", 7_000],
    ["1e9", undefined],
    ["99999999999999999999", 3_600_000],
    [new Date(0).toUTCString(), 1_000],
  ] as const) {
    answer = challenged(() => new Response("{}", { status: 429, headers: { "retry-after": header } }));
    const fault = (await faultOf(calls().post("/v1/any", NoReply, {}))) as NodeFault;
    expect([header, fault.status, fault.retryAfterMs]).toEqual([header, 429, pauseMs]);
  }
});

test("an answer to a challenge that is no text, or too long for a header, is no challenge", async () => {
  for (const challenge of [1, null, "", "c".repeat(101)]) {
    answer = () => Response.json({ challenge });
    expect(await faultOf(calls().post("/v1/any", NoReply, {}))).toMatchObject({ status: 0 });
  }
});
