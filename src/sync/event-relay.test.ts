import { expect, test } from "bun:test";
import { until } from "../../test/support/server/client.ts";
import { createAccount } from "../../test/support/worlds/acl-world.ts";
import type { SpaceId } from "../base/ids.ts";
import { silentLog } from "../base/log.ts";
import type { Replica } from "../space/port/replica.ts";
import { createEventRelay } from "./event-relay.ts";
import type { EventTransport, Transport } from "./transport.ts";
import { createTransports } from "./transports.ts";

const TECH = "tech" as SpaceId;
const SPACE = "space" as SpaceId;
const readKey = { id: new Uint8Array(16).fill(1), key: new Uint8Array(32).fill(2) };
const replicaOf = (id: SpaceId) => ({ id, readKey: () => readKey }) as unknown as Replica;

/** A transport that notes what the relay asks of it. */
function recorded() {
  const watched = new Map<string, readonly string[]>();
  const published: string[] = [];
  const events: EventTransport = {
    publish: ({ id }, topic) => void published.push(`${id} ${topic}`),
    watch: ({ id }, patterns) => void watched.set(id, patterns),
    forget: (spaceId) => void watched.delete(spaceId),
  };
  return { watched, published, transport: { events } as Transport };
}

function world() {
  const account = createAccount();
  const transports = createTransports();
  const relay = createEventRelay({
    account,
    peerId: account.peerId,
    tech: replicaOf(TECH),
    transports,
    clock: { nowMs: () => 1_000 },
    log: silentLog,
    open: async (spaceId) => replicaOf(spaceId as SpaceId),
    receive: () => {},
  });
  return { transports, relay };
}

test("[EVENT-3] a transport that joins is told what streams want of every audience by then", async () => {
  const { transports, relay } = world();
  relay.watch({ scope: "account" }, ["ev/a/*"]);
  relay.watch({ scope: "space", spaceId: SPACE }, ["ev/b/*", "ev/c/*"]);
  const [first, second] = [recorded(), recorded()];
  transports.join(first.transport);
  const wanted = [
    [SPACE, ["ev/b/*", "ev/c/*"]],
    [TECH, ["ev/a/*"]],
  ];
  await until(() => first.watched.size === 2, "what is wanted");
  expect([...first.watched].sort()).toEqual(wanted as never);
  transports.join(second.transport);
  await until(() => second.watched.size === 2, "what is wanted");
  expect([...second.watched].sort()).toEqual(wanted as never);
  relay.watch({ scope: "space", spaceId: SPACE }, []);
  expect([...first.watched.keys(), ...second.watched.keys()]).toEqual([TECH, TECH]);
});

test("[EVENT-1] an event goes over every transport that carries events, and nowhere where there is none", async () => {
  const { transports, relay } = world();
  relay.send({ scope: "account" }, "ev/early/-", 1);
  const [first, second] = [recorded(), recorded()];
  transports.join(first.transport);
  transports.join({} as Transport);
  transports.join(second.transport);
  relay.send({ scope: "space", spaceId: SPACE }, "ev/late/-", 2);
  await until(() => second.published.length > 0, "the event");
  expect([first.published, second.published]).toEqual([[`${SPACE} ev/late/-`], [`${SPACE} ev/late/-`]]);
});
