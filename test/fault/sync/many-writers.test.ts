/**
 * A member that writes under one device's name after the other, until there are more writers than a session holds at once
 * (262,144): what a write, a session and a server cost beside them, and that devices go on to hear of each other.
 * `WRITERS=270000` by hand.
 */
import { expect } from "bun:test";
import { bytesToHex } from "../../../src/base/bytes.ts";
import { decodeWants, encodeItems } from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import { besiege, processorMsOf, spaceBytesOf } from "../../support/hostile/besieged.ts";
import { forgeChange, memoryOf } from "../../support/hostile/hostile-peer.ts";
import { timed } from "../../support/latency.ts";
import { pace } from "../../support/pace.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { type Device, rowsOf, setName, statusOf, untilSynced } from "../../support/server/devices.ts";

const WRITERS = Number(process.env["WRITERS"] ?? 4_500);
const CHANGES_A_FRAME = 400;
const WRITERS_A_PUSH = 4_000;
/** For what all of them take, on a machine that does other things too. */
const WAIT_MS = 60_000 + WRITERS * 4;
/** A write beside any number of writers, on such a machine. */
const WRITE_MS = 2_000;
/** What a server may hold for each writer while it compares, and besides. */
const BYTES_A_WRITER = 4_000;
const BYTES_BESIDES = 300 << 20;

const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** What a server costs from now on. */
function watched(name: string, device: Device, spaceId: string) {
  const [memory, processor] = [memoryOf(device), processorMsOf(device)];
  let peak = memory;
  const timer = setInterval(() => {
    peak = Math.max(peak, memoryOf(device));
  }, 500);
  return {
    grown: () => peak - memory,
    report: () =>
      `${name}: ${mib(memory)} MiB before, at most ${mib(peak)}, ${mib(spaceBytesOf(device, spaceId))} MiB on the disk, ` +
      `${processorMsOf(device) - processor} ms of a processor`,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

rule(
  `[SYNC-5] beside ${WRITERS} writers of one member edits pass both ways, and a write takes no longer`,
  async () => {
    await using world = await besiege();
    const { server, honest, spaceId, objectId, writer } = world;
    using ofServer = watched("server", server, spaceId);
    using ofHonest = watched("honest", honest, spaceId);
    const { total } = await statusOf(server, spaceId);
    const heard = (device: Device, name: string) =>
      timed(() => until(async () => (await rowsOf(device, spaceId)).includes(name), name, WAIT_MS));

    const peer = await world.join();
    const lacking = async () => total + WRITERS - (await statusOf(server, spaceId)).total;
    /** As many writers as one message says that it has. What is lost with a session is made up for by others. */
    const push = async (count: number): Promise<void> => {
      const made = Array.from({ length: Math.min(WRITERS_A_PUSH, count) }, () => forgeChange(world.world, writer));
      const vector = made
        .map(({ id, header }) => ({ author: header.author, writer: header.writer, seq: 1, count: 1, last: id }))
        .map((state) => ({ ...state, forks: new Uint8Array(0) }))
        .sort((one, other) => Buffer.compare(one.writer, other.writer));
      // A server asks some of what a peer says that it has back, by its name.
      const bytesById = new Map(made.map(({ id, bytes }) => [bytesToHex(id), bytes]));
      peer.answers.set(SYNC_KINDS.wants, (body) =>
        encodeItems(decodeWants(body).ids.flatMap((id) => bytesById.get(bytesToHex(id)) ?? [])),
      );
      const frames = [];
      for (let at = 0; at < made.length; at += CHANGES_A_FRAME)
        frames.push(made.slice(at, at + CHANGES_A_FRAME).map(({ bytes }) => bytes));
      await peer.push(spaceId, { ...world.offer(frames), state: { vector } });
    };
    let slowest = 0;
    let isOver = false;
    const pushing = async (): Promise<void> => {
      for (let count = WRITERS; count > 0; count = await lacking()) await push(count);
      isOver = true;
    };
    const editing = async (): Promise<void> => {
      for (let n = 0; !isOver; n++) {
        slowest = Math.max(slowest, await timed(() => setName(server, spaceId, objectId, `meanwhile ${n}`)));
        await pace(250);
      }
    };
    const takenMs = await timed(() => Promise.all([pushing(), editing()]));
    await world.partAll();

    await setName(server, spaceId, objectId, "said here");
    const hereMs = await heard(honest, "said here");
    await setName(honest, spaceId, objectId, "said there");
    const thereMs = await heard(server, "said there");
    const allMs = await timed(async () => {
      const hasAll = async () => (await statusOf(honest, spaceId)).total >= total + WRITERS;
      await until(hasAll, "all writers at the other", WAIT_MS);
      for (const device of [server, honest]) await untilSynced(device, spaceId, WAIT_MS);
    });
    const writeMs = await timed(() => setName(server, spaceId, objectId, "the last"));
    const lastMs = await heard(honest, "the last");
    for (const line of [
      `${WRITERS} writers were taken in within ${takenMs.toFixed(0)} ms; a write beside them took at most ${slowest.toFixed(0)} ms`,
      `an edit was heard of within ${hereMs.toFixed(0)} ms, one of the other side within ${thereMs.toFixed(0)} ms; synced ${allMs.toFixed(0)} ms later`,
      `then a write took ${writeMs.toFixed(0)} ms and was heard of within ${lastMs.toFixed(0)} ms`,
      ofServer.report(),
      ofHonest.report(),
    ])
      console.log(line);
    expect(Math.max(slowest, writeMs)).toBeLessThan(WRITE_MS);
    for (const { grown } of [ofServer, ofHonest])
      expect(grown()).toBeLessThan(BYTES_BESIDES + WRITERS * BYTES_A_WRITER);
  },
  3 * WAIT_MS + 60_000,
);
