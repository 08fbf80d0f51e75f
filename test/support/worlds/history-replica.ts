/**
 * Replicas of one space with one object, for the history: the change engine on a database file each, several accounts,
 * four datasets (`items` with ids of the caller's, `auto` with the server's, `quiet` without history, the object's row).
 */
import type { RecordChange } from "../../../src/change/codec/change-body.ts";
import type { DatasetRules } from "../../../src/change/codec/dataset-rules.ts";
import { OBJECTS_DATASET } from "../../../src/change/fold/projection.ts";
import type { ObjectEntry } from "../../../src/change/graph/object-cache.ts";
import { createHistory, type History } from "../../../src/change/history/history.ts";
import type { WriteTx } from "../../../src/change/space-engine.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import type { Signer } from "../../../src/crypto/sign.ts";
import { OBJECT_RULES } from "../../../src/domain/object/object-rules.ts";
import { COMMON_GENESIS, changesOf, type OpenEngine, openEngine, type Rights } from "./open-engine.ts";

const RULES: Readonly<Record<string, DatasetRules>> = {
  items: { name: "items", idRule: "user" },
  auto: { name: "auto", idRule: "auto" },
  quiet: { name: "quiet", idRule: "user", skipHistory: true },
  [OBJECTS_DATASET]: OBJECT_RULES,
};

export interface HistoryReplica {
  readonly author: string;
  readonly engine: OpenEngine;
  readonly history: History;
  /** Makes the object that all writes go to, with its row; answers its id. */
  createObject(): Promise<string>;
  /** One change; answers its id. */
  write(objectId: string, dataset: string, records: RecordChange[], traceIds?: string[]): Promise<string>;
  /** Device-local fields of one record. */
  setLocal(objectId: string, dataset: string, recordId: string, value: string): Promise<void>;
  packets(): Promise<Uint8Array[]>;
  ingest(packets: readonly Uint8Array[]): Promise<void>;
  close(): Promise<void>;
}

/** The one field of `items` that a test keeps on the device. */
export const LOCAL_FIELD = "mark";

export function openHistoryReplica(options: {
  dir: string;
  name: string;
  author: Signer;
  now: () => number;
  rights?: Rights;
}): HistoryReplica {
  const { author, rights } = options;
  const onFailure = (error: unknown) => {
    throw error;
  };
  const rules = Object.values(RULES);
  const account = { signer: author };
  const engine = openEngine(options.dir, options.name, COMMON_GENESIS, account, rules, options.now, {
    rights,
    onFailure,
  });
  const history = createHistory({ engine, store: engine.store });
  const objectIn = (tx: WriteTx, objectId: string): ObjectEntry => {
    const object = tx.object(objectId);
    if (!object) throw new Error("the object is not here");
    return object;
  };
  const append = (tx: WriteTx, object: ObjectEntry, dataset: string, records: RecordChange[], traceIds?: string[]) =>
    tx.appendPartly(object, { dataset, records, ...(traceIds ? { traceIds } : {}) }, RULES[dataset]!);

  return {
    author: accountIdOf(author.publicKey),
    engine,
    history,
    createObject: () =>
      engine.write((tx) => {
        const object = tx.createObject();
        append(tx, object, OBJECTS_DATASET, [
          { id: object.idText, upsert: true, ops: [{ type: "$set", path: "svc.name", value: "made" }] },
        ]);
        return object.idText as string;
      }),
    write: (objectId, dataset, records, traceIds) =>
      engine.write((tx) => {
        const { changeId } = append(tx, objectIn(tx, objectId), dataset, records, traceIds);
        return cidFromDigest(changeId);
      }),
    setLocal: (objectId, dataset, recordId, value) =>
      engine.write((tx) => void tx.setLocal(objectIn(tx, objectId), dataset, recordId, { [LOCAL_FIELD]: value })),
    packets: () => changesOf(engine),
    ingest: async (packets) => void (await engine.ingest(packets)),
    async close() {
      history.close();
      await engine.close();
    },
  };
}
