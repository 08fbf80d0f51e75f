/**
 * What every transport keeps, whatever carries its bytes: two devices of an account, each with a database and an engine of
 * its own, that have nothing between them but the transport.
 */
import { describe, expect } from "bun:test";
import { addAccounts } from "../../../src/acl/compose/actions.ts";
import { bytesToHex } from "../../../src/base/bytes.ts";
import type { Clock } from "../../../src/base/clock.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { Timers } from "../../../src/base/timers.ts";
import type { Account } from "../../../src/crypto/account.ts";
import type { SpacePlace } from "../../../src/space/port/places.ts";
import type { AclBuild } from "../../../src/space/port/replica.ts";
import { createProgressBook } from "../../../src/sync/progress.ts";
import { createResting } from "../../../src/sync/resting.ts";
import type { Transport, TransportHost } from "../../../src/sync/transport.ts";
import { rule } from "../rule.ts";
import { scratchDir } from "../scratch.ts";
import { createDevices, type Device, digestOf, headOf, roleOf } from "./acl-devices.ts";
import { createAccount } from "./acl-world.ts";

/** What sync lends to a transport besides what is the same for all. */
interface ContractHost extends TransportHost {
  roundSoon(spaceId: SpaceId): void;
  notifyStatus(spaceId: SpaceId): void;
  markOf(spaceId: SpaceId): Uint8Array | undefined;
}

/** Two ends of a transport that is to be held to the contract. */
export interface TransportEnds extends AsyncDisposable {
  readonly clock: Clock;
  readonly timers: Timers;
  /** One more end, of this device. The first two are asked for before they meet. */
  open(host: ContractHost, device: Device): Promise<Transport>;
  /** From now on each can reach the other, or what keeps for both. */
  meet(): Promise<void>;
  /** Nobody is reached any more. */
  part(): Promise<void>;
  /** Waits for work, or until something holds, in the transport's own time. */
  run<T>(work: Promise<T>): Promise<T>;
  until(holds: () => boolean | Promise<boolean>, what: string): Promise<void>;
}

interface End {
  readonly device: Device;
  readonly transport: Transport;
  readonly host: ContractHost;
  round(): Promise<void>;
  /** Notes that the space was found synced. */
  rest(): void;
}

interface Pair {
  readonly ends: TransportEnds;
  readonly a: End;
  readonly b: End;
  /** Rounds of both until they are at the same, and know it. */
  converge(): Promise<void>;
}

async function openEnd(device: Device, ends: TransportEnds): Promise<End> {
  const { clock, timers } = ends;
  const book = createProgressBook();
  const resting = createResting({ book, clock });
  const { space } = device;
  const host: ContractHost = {
    book,
    clock,
    timers,
    log: silentLog,
    open: async (spaceId) => (spaceId === space.id ? space.replica : undefined),
    hold: (_spaceId, work) => work(),
    notifyChanged: resting.end,
    notifyProgress: () => {},
    notifyStatus: () => {},
    markOf: resting.mark,
    roundSoon: () => void transport.round(space.replica),
  };
  const transport: Transport = await ends.open(host, device);
  return {
    device,
    transport,
    host,
    round: () => ends.run(transport.round(space.replica)),
    rest: () => resting.begin(space.replica),
  };
}

async function withPair(open: () => Promise<TransportEnds>, run: (pair: Pair) => Promise<void>): Promise<void> {
  using dir = scratchDir("svc-transport");
  await using devices = createDevices(dir.path);
  await using ends = await open();
  const a = await openEnd(devices.open("a", devices.owner), ends);
  const b = await openEnd(devices.open("b", devices.owner), ends);
  const isDone = (): boolean =>
    digestOf(a) === digestOf(b) &&
    headOf(a) === headOf(b) &&
    [a, b].every(({ device }) => device.space.replica.facts().complete && !device.space.replica.acl.hasPending());
  const converge = (): Promise<void> =>
    ends.until(async () => {
      for (const end of [a, b]) {
        await end.round();
        await ends.run(end.device.space.replica.acl.sequencePending());
      }
      return isDone();
    }, "both are at the same, and nothing is kept by one alone");
  try {
    await run({ ends, a, b, converge });
  } finally {
    for (const { transport } of [a, b]) await ends.run(transport.close());
  }
}

const admitting =
  (account: Account): AclBuild =>
  (context) =>
    addAccounts(context, [{ identity: account.id, permission: "writer" }]);

/** As sync changes the ACL: in the order that somebody else keeps, else at once. */
const changeAcl = ({ transport, device }: End, build: AclBuild): Promise<unknown> =>
  transport.appendAcl ? transport.appendAcl(device.space.replica, build) : device.space.aclService.act(build);

/** What all transports keep. */
const CLAUSES: Readonly<Record<string, (pair: Pair) => Promise<void>>> = {
  async "while nobody is reached it names nobody, and a round ends quietly"({ a }) {
    const { id } = a.device.space;
    expect(a.transport.names(id)).toEqual([]);
    await a.round();
    expect(a.transport.names(id)).toEqual([]);
    expect([...a.host.book.of(id).peers.values()].map(({ lastSyncAtMs }) => lastSyncAtMs)).not.toContain(
      expect.any(Number),
    );
    expect(await a.transport.resting(new Map([[id, undefined]]))).toEqual(new Set([id]));
  },

  async "rounds bring everything of both to both, and what is kept there counts as kept"(pair) {
    const { ends, a, b, converge } = pair;
    for (let at = 0; at < 5; at++) await a.device.write(`a${at}`, "of a");
    for (let at = 0; at < 5; at++) await b.device.write(`b${at}`, "of b");
    expect(a.device.space.replica.facts().complete).toBe(false);
    await ends.meet();
    await converge();
    expect(await a.device.rows()).toEqual(await b.device.rows());
    expect(Object.keys(await a.device.values())).toHaveLength(10);
    expect(a.transport.names(a.device.space.id)).toHaveLength(1);
  },

  async "two that move the ACL at the same time end with one log that has both"(pair) {
    const { ends, a, b, converge } = pair;
    await ends.meet();
    await converge();
    const [one, other] = [createAccount(), createAccount()];
    await ends.run(Promise.all([changeAcl(a, admitting(one)), changeAcl(b, admitting(other))]));
    await converge();
    for (const { device } of [a, b]) expect([roleOf(device, one), roleOf(device, other)]).toEqual(["writer", "writer"]);
  },

  async "what is written is heard of by the other without a regular round"({ ends, a, b, converge }) {
    await ends.meet();
    await converge();
    await a.device.write("news", "from a");
    a.transport.changed(a.device.space.replica);
    await ends.until(async () => (await b.device.values())["news"] === "from a", "the news at the other");
  },

  async "a space rests where it was found synced, and nowhere else"({ ends, a, b, converge }) {
    const { id } = a.device.space;
    await ends.meet();
    await a.device.write("one", "1");
    await converge();
    expect(await ends.run(a.transport.resting(new Map([[id, undefined]])))).toEqual(new Set());
    for (const end of [a, b]) end.rest();
    expect(await ends.run(a.transport.resting(new Map([[id, a.host.markOf(id)]])))).toEqual(new Set([id]));
  },

  async "the ACL log is found by what a token says, from its root on"({ ends, a, b, converge }) {
    await ends.meet();
    await converge();
    const { space } = a.device;
    const place: SpacePlace = {
      spaceId: space.id,
      transportSecret: space.replica.transportSecret()!,
      linkKey: new Uint8Array(32).fill(7),
      seeds: [],
    };
    const found = await ends.run(b.transport.findAclLog(place));
    expect(found?.map(bytesToHex)).toEqual(a.device.aclLog().map(bytesToHex));
    const nowhere: SpacePlace = {
      ...place,
      spaceId: "none" as SpaceId,
      transportSecret: new Uint8Array(32).fill(9),
    };
    expect(await ends.run(b.transport.findAclLog(nowhere))).toBeUndefined();
  },

  async "who is gone is named no more, and what is written then is kept by nobody"(pair) {
    const { ends, a, converge } = pair;
    await ends.meet();
    await converge();
    await ends.part();
    await ends.until(() => a.transport.names(a.device.space.id).length === 0, "nobody is named");
    await a.device.write("alone", "1");
    await a.round();
    expect(a.device.space.replica.facts().complete).toBe(false);
  },

  async "once it is closed it does nothing more, whatever it is asked"({ ends, a, b, converge }) {
    const { id, replica } = a.device.space;
    await ends.meet();
    await converge();
    await ends.run(a.transport.forget(id));
    await ends.run(a.transport.close());
    await a.device.write("late", "1");
    a.transport.changed(replica);
    await ends.run(a.transport.close());
    expect((await b.device.values())["late"]).toBeUndefined();
    expect(replica.facts().complete).toBe(false);
  },
};

/** Holds a transport to what all of them keep. */
export function transportContract(name: string, open: () => Promise<TransportEnds>): void {
  describe(`${name} as a transport`, () => {
    for (const [clause, run] of Object.entries(CLAUSES)) rule(clause, () => withPair(open, run), 60_000);
  });
}
