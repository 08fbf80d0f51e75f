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
import type { ChangeBody, RecordChange } from "../../src/change/codec/change-body.ts";
import { decodeChange, isDerivedRoot } from "../../src/change/codec/change-codec.ts";
import { changeIdOf } from "../../src/change/codec/change-stub.ts";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import type { IngestVerdict } from "../../src/change/intake/ingest-verdict.ts";
import type { Account } from "../../src/crypto/account.ts";
import { accountIdOf } from "../../src/crypto/account-id.ts";
import { svcError } from "../../src/protocol/errors.ts";
import { createdSpaceGenesis, openSpace, type Space, type SpaceGenesis, writeGenesis } from "../../src/space/space.ts";
import { createAccount } from "./acl-world.ts";
import { forge } from "./forged-packet.ts";
import type { DecodedChange } from "./reference-fold.ts";
import type { OpenWorld, Packet, Replica } from "./replica-port.ts";
import { allChanges, OBJECT_TYPE, objectIn, packetOf } from "./world-space.ts";

type Verdict = Awaited<ReturnType<Replica["ingest"]>>[number];

const ITEMS: DatasetRules = { name: "items", idRule: "user" };
const AUTO: DatasetRules = { name: "auto", idRule: "auto" };

interface Open {
  space: Space;
  path: string;
  account: Account;
  /** ACL records that came before what they follow. */
  early: Uint8Array[];
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
    forge: async (kind, base) => forge(kind, { space: open.get(base)!.space, owner, now }),
    async [Symbol.asyncDispose]() {
      for (const { space } of open.values()) await space.close();
    },
  };
};
