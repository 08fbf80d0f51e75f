/**
 * The engine behind `replica-port.ts`: one space, one object, the datasets `items` and `auto`. Ids are hex here, so that
 * their texts sort as the ids do.
 */
import type { AclMerge } from "../../../src/acl/log/acl-log.ts";
import { canWrite } from "../../../src/acl/record/permission.ts";
import { bytesToHex } from "../../../src/base/bytes.ts";
import type { ChangeBody, RecordChange } from "../../../src/change/codec/change-body.ts";
import { decodeChange, isDerivedRoot } from "../../../src/change/codec/change-codec.ts";
import { changeIdOf } from "../../../src/change/codec/change-stub.ts";
import type { DatasetRules } from "../../../src/change/codec/dataset-rules.ts";
import type { IngestVerdict } from "../../../src/change/intake/ingest-verdict.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { svcError } from "../../../src/protocol/errors.ts";
import { refusalText } from "../../../src/protocol/refusals.ts";
import { forge } from "../hostile/forged-packet.ts";
import type { DecodedChange } from "../oracle/reference-fold.ts";
import { add, createDevices, type Device, remove } from "./acl-devices.ts";
import { createAccount } from "./acl-world.ts";
import type { OpenWorld, Packet, Replica } from "./replica-port.ts";
import { ITEMS, ITEMS_TYPE, registryOf } from "./test-space.ts";
import { allChanges, objectIn, packetOf } from "./world-space.ts";

type Verdict = Awaited<ReturnType<Replica["ingest"]>>[number];

const AUTO: DatasetRules = { name: "auto", idRule: "auto" };

interface Open {
  readonly device: Device;
  /** ACL records that came before what they follow. */
  readonly early: Uint8Array[];
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
      return { id, outcome: "refused", reason: refusalText(verdict.refusal) };
  }
}

/** Sessions send the ACL log in its order; here it may come in any, so records are held until what they follow is here. */
async function takeRecord(opened: Open, packet: Packet): Promise<Verdict> {
  opened.early.push(packet.bytes);
  let merge: AclMerge | undefined;
  for (let progress = true; progress; ) {
    progress = false;
    for (const bytes of [...opened.early]) {
      const result = await opened.device.space.aclService.take([bytes]);
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
      return { id, outcome: "refused", reason: refusalText(merge!.refusal!) };
  }
}

function createReplica(opened: Open): Replica {
  const { device } = opened;
  const engine = () => device.space.engine;
  const append = (dataset: DatasetRules, records: RecordChange[]) => {
    const { space } = device;
    if (!canWrite(space.role())) throw svcError("space.read_only", { spaceId: space.id, role: space.role() });
    return engine().write((tx) => {
      const body: ChangeBody = { dataset: dataset.name, records };
      return tx.appendPartly(tx.ensureDerived(ITEMS_TYPE, ""), body, dataset);
    });
  };
  return {
    name: device.name,
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
      const { space } = device;
      const records = space.acl.records().slice(1); // the root came with the space
      // Who was removed cannot open what came after, nor what follows it, but holds it like everybody else.
      const { parked } = space.store;
      const sealed = space.role() === "none" ? [...parked.ofKind("key"), ...parked.ofKind("change")] : [];
      return [
        ...records.map(({ id, bytes }) => packetOf("acl", id, bytes)),
        ...[...allChanges(space), ...sealed].map(({ id, bytes }) => packetOf("change", id, bytes)),
      ];
    },
    async ingest(packets) {
      const verdicts: Verdict[] = [];
      for (let at = 0; at < packets.length; ) {
        const next = packets.findIndex(({ kind }, place) => place >= at && kind === "acl");
        const changes = packets.slice(at, next < 0 ? undefined : next).map(({ bytes }) => bytes);
        const taken = changes.length > 0 ? await engine().ingest(changes) : [];
        verdicts.push(...taken.map((verdict, place) => toVerdict(changes[place]!, verdict)));
        if (next >= 0) verdicts.push(await takeRecord(opened, packets[next]!));
        at = next < 0 ? packets.length : next + 1;
      }
      return verdicts;
    },
    rowTexts: (dataset) => device.rows(dataset),
    rebuild: async () => void (await engine().rebuildProjection()),
    reopen: () => device.reopen(),
    async decoded() {
      const object = objectIn(device.space);
      const decoded: DecodedChange[] = [];
      for (const stored of allChanges(device.space)) {
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
      device.space.store.db
        .query<{ id: Uint8Array }, []>(
          "SELECT id FROM parked UNION SELECT c.id FROM pending_bodies u JOIN changes c ON c.no = u.change",
        )
        .all()
        .map((row) => bytesToHex(row.id)),
    forks: async () =>
      device.space.store.db
        .query<{ n: number }, []>(
          "SELECT count(*) AS n FROM (SELECT 1 FROM changes WHERE seq > 0 GROUP BY writer, seq HAVING count(*) > 1)",
        )
        .get()!.n,
  };
}

export const openWorld: OpenWorld = async ({ dir, now, checkpointEveryOps, foldSliceMs }) => {
  const devices = createDevices(dir, { clock: { nowMs: now }, registry: () => registryOf(ITEMS, AUTO) });
  const { owner } = devices;
  const deviceOf = new Map<Replica, Device>();

  const create = async (name: string, account: Account): Promise<Replica> => {
    const device = devices.open(name, account, {
      ...(checkpointEveryOps ? { checkpointEveryOps } : {}),
      ...(foldSliceMs === undefined ? {} : { foldSliceMs }),
    });
    const replica = createReplica({ device, early: [] });
    deviceOf.set(replica, device);
    return replica;
  };

  return {
    createReplica: (name) => create(name, owner),
    async createMember(name) {
      const account = createAccount();
      const by = [...deviceOf.values()].find((one) => one.account === owner);
      if (!by) throw new Error("a member is let in by a replica of the owner's");
      const added = await add(by, account);
      const member = await create(name, account);
      await member.ingest([packetOf("acl", added!.id, added!.bytes)]);
      return member;
    },
    async removeMember(member, at) {
      await remove(deviceOf.get(at)!, deviceOf.get(member)!.account);
    },
    forge: async (kind, base) => forge(kind, { space: deviceOf.get(base)!.space, owner, now }),
    [Symbol.asyncDispose]: () => devices[Symbol.asyncDispose](),
  };
};
