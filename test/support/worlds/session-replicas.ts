/** Replicas of one space that exchange changes by the session protocol, in one process. */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { RulesRegistry } from "../../../src/change/codec/ports.ts";
import { DELETION_RULES } from "../../../src/change/fold/deletion-log.ts";
import type { Account } from "../../../src/crypto/account.ts";
import type { SpaceGenesis } from "../../../src/space/genesis.ts";
import { vectorOf } from "../../../src/space/replica/own-vector.ts";
import type { OpenSpaceDeps, Space } from "../../../src/space/space.ts";
import { fetchAcl } from "../../../src/sync/session/acl-fetch.ts";
import { askState } from "../../../src/sync/session/ask-state.ts";
import { fetchMissing } from "../../../src/sync/session/fetch.ts";
import {
  decodeAclRequest,
  decodePullRequest,
  decodeStateRequest,
  decodeVectorRequest,
  decodeWants,
  encodeItems,
  encodePullReply,
  encodeState,
  encodeVectorPage,
} from "../../../src/sync/session/messages.ts";
import { stateFor } from "../../../src/sync/session/own-state.ts";
import { type RemoteReplica, SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import { vectorPage } from "../../../src/sync/session/vector-parts.ts";
import { ITEMS, openSpaceIn, rowTexts } from "./test-space.ts";

const directories: string[] = [];
const opened: Space[] = [];

/** Closes what the tests of a file opened: for its `afterEach`. */
export async function closeReplicas(): Promise<void> {
  for (const space of opened.splice(0)) await space.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
}

/** Rules of `items`, and of `notes` once `defs` has brought their definition: a record of the type object. */
function definitions(): RulesRegistry {
  const known = new Set<string>();
  return {
    rulesFor(dataset, definition) {
      if (dataset === "notes" && definition !== undefined && !known.has(definition)) return { missing: definition };
      if (dataset === DELETION_RULES.name) return { rules: DELETION_RULES };
      return ["items", "defs", "notes"].includes(dataset) ? { rules: { ...ITEMS, name: dataset } } : { unknown: true };
    },
    learn(objectId, body) {
      if (body.dataset !== "defs") return [];
      const names = body.records.map(({ id }) => `${objectId}/${id}`);
      for (const name of names) known.add(name);
      return names;
    },
    outlives: (dataset) => dataset === "defs",
  };
}

export function replicaOf(genesis: SpaceGenesis, account: Account, options: Pick<OpenSpaceDeps, "quota"> = {}): Space {
  const directory = mkdtempSync(join(tmpdir(), "svc-session-"));
  directories.push(directory);
  const deps = { account, clock: systemClock, registry: definitions, ...options };
  const space = openSpaceIn(join(directory, "space.db"), genesis, deps);
  opened.push(space);
  return space;
}

export const rows = (space: Space): string => rowTexts(space).join("\n");

/** Writers that both replicas have, with one change each. What it says nobody asks: neither lacks it. */
export function addWriters(spaces: readonly Space[], author: Uint8Array, count: number): void {
  const made = Array.from({ length: count }, () => ({ writer: randomBytes(16), id: randomBytes(32) }));
  for (const { store } of spaces) {
    const { db } = store;
    const addWriter = db.query<{ no: number }, [Uint8Array, Uint8Array, Uint8Array]>(
      "INSERT INTO writers(author, id, seq, last, changes, counted) VALUES(?, ?, 1, ?, 1, 1) RETURNING no",
    );
    const addChange = db.query<null, [Uint8Array, number]>(
      "INSERT INTO changes(id, objectNo, lamport, writer, seq, acl_pos, time, datasetNo, counts, bytes) VALUES(?, 0, 1, ?, 1, 0, 0, 0, 1, x'00')",
    );
    db.transaction(() => {
      for (const { writer, id } of made) addChange.run(id, addWriter.get(author, writer, id)!.no);
    })();
  }
}

/** A replica whose every message, either way, is as large as a link takes at most. */
export function measured(
  remote: RemoteReplica,
): RemoteReplica & { largest: () => number; asked: (kind: string) => number } {
  let largest = 0;
  const asked: string[] = [];
  return {
    largest: () => largest,
    asked: (kind) => asked.filter((each) => each === kind).length,
    async request(kind, body) {
      const reply = await remote.request(kind, body);
      asked.push(kind);
      largest = Math.max(largest, body.length, reply.length);
      return reply;
    },
  };
}

type Tamper = (kind: string, reply: Uint8Array) => Uint8Array;

/** The other side of a session as the LAN serves it, for a reader who may have the content or not. */
export function remoteOf(space: Space, reader: Account, tamper: Tamper = (_kind, reply) => reply): RemoteReplica {
  const answer = (kind: string, body: Uint8Array): Uint8Array => {
    if (kind === SYNC_KINDS.state)
      return encodeState(stateFor(space.replica, decodeStateRequest(body), space.replica.acl.mayRead(reader.id)));
    if (kind === SYNC_KINDS.pull) return encodePullReply(space.replica.pull(decodePullRequest(body)));
    if (kind === SYNC_KINDS.vector) {
      const { after, parts } = decodeVectorRequest(body);
      return encodeVectorPage(vectorPage(vectorOf(space), after, parts));
    }
    if (kind === SYNC_KINDS.wants) return encodeItems(space.replica.changesNamed(decodeWants(body).ids));
    if (kind === SYNC_KINDS.acl) return encodeItems(space.replica.acl.recordsFrom(decodeAclRequest(body).from));
    return encodeItems(space.replica.acl.pending());
  };
  return { request: async (kind, body) => new Uint8Array(tamper(kind, answer(kind, new Uint8Array(body)))) };
}

export async function pullAll(from: RemoteReplica, into: Space) {
  const state = await askState(from, into.replica);
  expect(await fetchAcl(from, into.replica, state)).toBeUndefined();
  return { state, fetched: await fetchMissing(from, into.replica, state.vector) };
}
