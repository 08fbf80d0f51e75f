import { expect, test } from "bun:test";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { type OutgoingMessage, openInboxMessage } from "./inbox-messages.ts";
import { createOutbox } from "./outbox.ts";

function world() {
  const account = createAccount();
  const waiting = new Map<string, OutgoingMessage>();
  let reads = 0;
  const box = {
    outgoing() {
      reads++;
      return [...waiting.values()];
    },
    put: async (message: OutgoingMessage) => void waiting.set(bytesToHex(message.id), message),
    drop: async (id: Uint8Array) => void waiting.delete(bytesToHex(id)),
  };
  const clock = { nowMs: () => 1_000 };
  const messages = createOutbox({ account, box, clock, hasNetwork: false });
  return { messages, waiting, reads: () => reads };
}

test("[SYNC-5] what is left for somebody costs no more for what waits already", async () => {
  const { messages, waiting, reads } = world();
  const other = createAccount();
  for (let n = 0; n < 50; n++) await messages.send(other.id, { kind: "k", body: { n } });
  expect([waiting.size, reads()]).toEqual([50, 0]);
});

test("[SYNC-12] a device is handed what waits for its account, all of it, and the rest waits on", async () => {
  const { messages, waiting, reads } = world();
  const [other, third] = [createAccount(), createAccount()];
  for (let n = 0; n < 20; n++) await messages.send(n % 2 === 0 ? other.id : third.id, { kind: "k", body: { n } });
  const given: unknown[] = [];
  await messages.handOver(other.id, async (sealed) => void given.push(openInboxMessage(other, sealed)?.message.body));
  expect(given).toEqual(Array.from({ length: 10 }, (_, n) => ({ n: 2 * n })));
  expect([waiting.size, reads()]).toEqual([10, 1]);
});
