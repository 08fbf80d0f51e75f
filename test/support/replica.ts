/**
 * The engine behind `replica-port.ts`: one space, one object, the datasets `items` and `auto`. Ids are hex here, so that
 * their texts sort as the ids do.
 */
import { join } from "node:path";
import type { AclMerge } from "../../src/acl/acl-log.ts";
import { addAccounts, removeAccounts } from "../../src/acl/actions.ts";
import { canWrite } from "../../src/acl/permission.ts";
import { bytesToHex } from "../../src/base/bytes.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { ObjectId, PeerId } from "../../src/base/ids.ts";
import { randomBytes } from "../../src/base/random.ts";
import { createBodyOpener } from "../../src/change/codec/body-opener.ts";
import type { ChangeBody, RecordChange } from "../../src/change/codec/change-body.ts";
import {
  type Change,
  type ChangeHeader,
  decodeChange,
  encodeChange,
  encodeHeader,
  isDerivedRoot,
} from "../../src/change/codec/change-codec.ts";
import { changeIdOf } from "../../src/change/codec/change-stub.ts";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import { autoRecordId } from "../../src/change/codec/version.ts";
import type { IngestVerdict } from "../../src/change/intake/ingest-verdict.ts";
import type { Account } from "../../src/crypto/account.ts";
import { accountIdOf } from "../../src/crypto/account-id.ts";
import { keyIdOf } from "../../src/crypto/seal.ts";
import { createSigner, type Signer } from "../../src/crypto/sign.ts";
import { svcError } from "../../src/protocol/errors.ts";
import { createdSpaceGenesis, openSpace, type Space, type SpaceGenesis, writeGenesis } from "../../src/space/space.ts";
import type { StoredChange } from "../../src/store/change-table.ts";
import type { DecodedChange } from "./reference-fold.ts";
import type { Forgery, OpenWorld, Packet, Replica } from "./replica-port.ts";

type Verdict = Awaited<ReturnType<Replica["ingest"]>>[number];
type ForgedPacket = Awaited<ReturnType<Awaited<ReturnType<OpenWorld>>["forge"]>>;

const ITEMS: DatasetRules = { name: "items", idRule: "user" };
const AUTO: DatasetRules = { name: "auto", idRule: "auto" };
const OBJECT_TYPE = "test.world";

interface Open {
  space: Space;
  path: string;
  account: Account;
  /** ACL records that came before what they follow. */
  early: Uint8Array[];
}

function createAccount(): Account {
  const seed = randomBytes(32);
  const signer = createSigner(seed);
  return { id: accountIdOf(signer.publicKey), peerId: "test" as PeerId, seed, signer };
}

function openAt(path: string, seed: SpaceGenesis, account: Account, clock: Clock, checkpointEveryOps?: number): Space {
  return openSpace(path, seed.spaceId, {
    account,
    clock,
    ...(checkpointEveryOps ? { checkpointEveryOps } : {}),
    registry: () => ({
      rulesFor: (dataset) =>
        dataset === "items" ? { rules: ITEMS } : dataset === "auto" ? { rules: AUTO } : { unknown: true },
    }),
  });
}

/** Every change in the log, in the order in which it came: parents before what needs them. */
function* allChanges(space: Space): Generator<StoredChange> {
  for (let after = 0; ; ) {
    const page = space.engine.store.changes.after(after, 200);
    yield* page;
    if (page.length < 200) return;
    after = page[page.length - 1]!.no;
  }
}

const objectIn = (space: Space) => space.engine.object(space.engine.derivedId(OBJECT_TYPE, ""));

function toVerdict(bytes: Uint8Array, verdict: IngestVerdict): Verdict {
  const id = bytesToHex(changeIdOf(bytes));
  switch (verdict.kind) {
    case "stored":
      return verdict.counts ? { id, outcome: "applied" } : { id, outcome: "discounted", reason: "no right to write" };
    case "known":
      return { id, outcome: "duplicate" };
    case "parked":
      return {
        id,
        outcome: "parked",
        reason: `waits for a ${verdict.waitKind === "change" ? "parent" : verdict.waitKind}`,
      };
    case "quarantined":
    case "refused":
      return { id, outcome: "refused", reason: verdict.reason };
  }
}

const packetOf = (kind: Packet["kind"], id: Uint8Array, bytes: Uint8Array): Packet => ({
  id: bytesToHex(id),
  kind,
  bytes,
});

/** Sessions send the chain in its order; here it may come in any, so records are held until what they follow is here. */
async function takeRecord(opened: Open, packet: Packet): Promise<Verdict> {
  opened.early.push(packet.bytes);
  let merge: AclMerge | undefined;
  for (let progress = true; progress; ) {
    progress = false;
    for (const bytes of [...opened.early]) {
      const result = await opened.space.aclService.take([bytes]);
      if (bytes === packet.bytes) merge = result;
      if (result.kind === "gap") continue;
      opened.early.splice(opened.early.indexOf(bytes), 1);
      progress = true;
    }
  }
  const { id } = packet;
  switch (merge!.kind) {
    case "extended":
    case "replaced":
      return { id, outcome: "applied" };
    case "known":
      return { id, outcome: "duplicate" };
    case "gap":
      return { id, outcome: "parked", reason: "waits for a acl" };
    default:
      return { id, outcome: "refused", reason: merge!.reason! };
  }
}

function createReplica(name: string, opened: Open, reopenSpace: () => Space): Replica {
  const engine = () => opened.space.engine;
  const append = (dataset: DatasetRules, records: RecordChange[]) => {
    const { space } = opened;
    if (!canWrite(space.role())) throw svcError("space.read_only", { spaceId: space.id, role: space.role() });
    return engine().write((tx) => {
      const body: ChangeBody = { dataset: dataset.name, records };
      return tx.append(tx.ensureDerived(OBJECT_TYPE, ""), body, dataset);
    });
  };
  return {
    name,
    async write(records, dataset = "items") {
      await append(
        dataset === "items" ? ITEMS : AUTO,
        records.map((record) => ({
          ...record,
          ops: record.ops.map((op) => ({ ...op, path: op.path ?? "" })),
        })) as RecordChange[],
      );
    },
    async deleteRecords(ids) {
      await append(
        ITEMS,
        ids.map((id) => ({ id, delete: true, ops: [] })),
      );
    },
    async packets() {
      await engine().idle();
      const { space } = opened;
      const records = space.acl.records().slice(1); // the root came with the space
      // Who was removed cannot open what came after, nor what follows it, but holds it like everybody else.
      const { parked } = space.engine.store;
      const sealed = space.role() === "none" ? [...parked.ofKind("key"), ...parked.ofKind("change")] : [];
      return [
        ...records.map(({ id, bytes }) => packetOf("acl", id, bytes)),
        ...[...allChanges(space), ...sealed].map(({ id, bytes }) => packetOf("change", id, bytes)),
      ];
    },
    async ingest(packets) {
      const verdicts: Verdict[] = [];
      for (const packet of packets) {
        if (packet.kind === "acl") verdicts.push(await takeRecord(opened, packet));
        else {
          const [verdict] = await engine().ingest([packet.bytes]);
          verdicts.push(toVerdict(packet.bytes, verdict!));
        }
      }
      return verdicts;
    },
    async rowTexts(dataset = "items") {
      await engine().idle();
      const object = objectIn(opened.space);
      const collectionId = object && engine().collectionIdOf(object, dataset);
      if (collectionId === undefined) return [];
      return engine()
        .store.db.query<{ doc: string }, [number]>(
          "SELECT doc FROM rows WHERE collectionId = ? AND state > 0 ORDER BY id",
        )
        .all(collectionId)
        .map((row) => row.doc);
    },
    rebuild: async () => void (await engine().rebuildProjection()),
    async reopen() {
      await opened.space.close();
      opened.space = reopenSpace();
    },
    async decoded() {
      const object = objectIn(opened.space);
      const decoded: DecodedChange[] = [];
      for (const stored of allChanges(opened.space)) {
        const change = decodeChange(stored.bytes);
        if (isDerivedRoot(change) || !object) continue;
        const read = engine().opener.open(change, object.idText);
        if (!("body" in read)) throw new Error("a stored change does not open");
        if (read.body.dataset !== "items") continue;
        decoded.push({
          id: bytesToHex(stored.id),
          lamport: stored.lamport,
          author: accountIdOf(change.header.author),
          time: stored.timeMs,
          counts: stored.counts,
          records: read.body.records as DecodedChange["records"],
        });
      }
      return decoded;
    },
    parked: async () =>
      engine()
        .store.db.query<{ id: Uint8Array }, []>(
          "SELECT id FROM parked UNION SELECT c.id FROM unopened u JOIN changes c ON c.no = u.change",
        )
        .all()
        .map((row) => bytesToHex(row.id)),
    forks: async () =>
      engine()
        .store.db.query<{ n: number }, []>(
          "SELECT count(*) AS n FROM (SELECT 1 FROM changes WHERE seq > 0 GROUP BY writer, seq HAVING count(*) > 1)",
        )
        .get()!.n,
  };
}

export const openWorld: OpenWorld = async ({ dir, now, checkpointEveryOps }) => {
  const clock: Clock = { nowMs: now };
  const owner = createAccount();
  const seed = createdSpaceGenesis(owner, clock);
  const open = new Map<Replica, Open>();

  const create = async (name: string, account: Account): Promise<Replica> => {
    const path = join(dir, `${name}.db`);
    writeGenesis(path, seed);
    const openSpaceHere = () => openAt(path, seed, account, clock, checkpointEveryOps);
    const opened: Open = { path, account, early: [], space: openSpaceHere() };
    const replica = createReplica(name, opened, openSpaceHere);
    open.set(replica, opened);
    return replica;
  };

  return {
    createReplica: (name) => create(name, owner),
    async createMember(name) {
      const account = createAccount();
      const by = [...open.values()].find((one) => one.account === owner);
      if (!by) throw new Error("a member is let in by a replica of the owner's");
      const added = await by.space.aclService.act((context) =>
        addAccounts(context, [{ identity: account.id, permission: "writer" }]),
      );
      const member = await create(name, account);
      await member.ingest([packetOf("acl", added!.id, added!.bytes)]);
      return member;
    },
    async removeMember(member, at) {
      const { account } = open.get(member)!;
      await open.get(at)!.space.aclService.act((context) => removeAccounts(context, [account.id]));
    },
    forge: async (kind, base) => forge(kind, open.get(base)!.space, seed, owner, now),
    async [Symbol.asyncDispose]() {
      for (const { space } of open.values()) await space.close();
    },
  };
};

/** The parts of a change that a forger turns at will; whatever is not named is as an honest device would have it. */
interface Draft {
  header: Partial<ChangeHeader>;
  body: ChangeBody;
  signer: Signer;
  readKey: Uint8Array;
}

function forge(kind: Forgery, space: Space, seed: SpaceGenesis, owner: Account, now: () => number): ForgedPacket {
  const object = objectIn(space)!;
  const parents = object.heads;
  const own = [...allChanges(space)].filter((change) => change.seq > 0);
  const chained = own.map((change) => decodeChange(change.bytes) as Change);
  const epoch = space.keys.current()!;
  const head = space.acl.head();
  const maxParent = Math.max(...parents.map((parent) => parent.lamport));

  const draft: Draft = {
    header: {},
    body: {
      dataset: "items",
      records: [{ id: "forged", upsert: true, ops: [{ type: "$set", path: "s", value: "forged" }] }],
    },
    signer: owner.signer,
    readKey: epoch.key,
  };
  const build = (): { bytes: Uint8Array; id: Uint8Array } => {
    const fresh = randomBytes(16);
    const header: ChangeHeader = {
      kind: "change",
      space: decodeChange(own[0]!.bytes).header.space,
      object: object.id,
      parents: parents.map((parent) => parent.id),
      lamport: maxParent + 1,
      writer: fresh,
      seq: 1,
      prev: null,
      author: draft.signer.publicKey,
      time: now(),
      acl: head.id,
      keyId: keyIdOf(draft.readKey),
      ...draft.header,
    };
    const headerBytes = encodeHeader(header);
    const keys = { current: () => undefined, byId: () => undefined };
    const sealed = createBodyOpener(seed.spaceId, keys).seal(
      draft.body,
      object.idText as ObjectId,
      { id: header.keyId, key: draft.readKey },
      headerBytes,
    );
    return encodeChange(headerBytes, sealed, draft.signer);
  };
  const packet = ({ bytes, id }: { bytes: Uint8Array; id: Uint8Array }): Packet => ({
    id: bytesToHex(id),
    kind: "change",
    bytes,
  });
  const withBytes = (bytes: Uint8Array): ForgedPacket => ({ packet: packet({ bytes, id: changeIdOf(bytes) }) });

  switch (kind) {
    case "stranger":
    case "acl-without-right":
      draft.signer = createAccount().signer;
      break;
    case "foreign-key":
      draft.readKey = randomBytes(32);
      break;
    case "wrong-lamport":
      draft.header.lamport = maxParent + 2;
      break;
    case "low-lamport":
      draft.header.lamport = maxParent;
      break;
    case "broken-chain": {
      // Continues the writer at a number that its named predecessor does not have.
      const last = chained[chained.length - 1]!;
      Object.assign(draft.header, {
        writer: last.header.writer,
        seq: last.header.seq + 2,
        prev: last.id,
        lamport: Math.max(maxParent, last.header.lamport) + 1,
      });
      break;
    }
    case "same-seq": {
      const last = chained[chained.length - 1]!;
      Object.assign(draft.header, {
        writer: last.header.writer,
        seq: last.header.seq,
        prev: last.header.prev,
        lamport: Math.max(maxParent, last.header.lamport) + 1,
      });
      break;
    }
    case "forged-record-id":
      draft.body = {
        dataset: "auto",
        records: [
          { id: autoRecordId(randomBytes(32), 0), upsert: true, ops: [{ type: "$set", path: "s", value: "forged" }] },
        ],
      };
      break;
    case "unknown-parent": {
      const missing = build();
      draft.header = { parents: [missing.id], lamport: maxParent + 2 };
      return { packet: packet(build()), missing: packet(missing) };
    }
    case "bad-signature": {
      const { bytes } = build();
      const turned = bytes.slice();
      turned[turned.length - 1]! ^= 1;
      return withBytes(turned);
    }
    case "bad-bytes":
      // One byte after the end: the same value, another encoding.
      return withBytes(Buffer.concat([build().bytes, Uint8Array.of(0)]));
    case "bad-text": {
      // The header says "change" in a text that turns invalid: major type 3, six bytes.
      const { bytes } = build();
      const turned = Buffer.from(bytes);
      turned[turned.indexOf("\x66change") + 1] = 0xff;
      return withBytes(turned);
    }
    case "other-space":
      draft.header.space = randomBytes(32);
      break;
  }
  return { packet: packet(build()) };
}
