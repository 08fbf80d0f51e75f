/**
 * Replicas of one space with types, datasets and records: the change engine with the services over it, each in a
 * database file of its own, several accounts that may all write. Changes travel as bytes.
 */
import { join } from "node:path";
import type { SpaceId } from "../../src/base/ids.ts";
import type { AclView, KeyRing } from "../../src/change/ports.ts";
import { createChangeEngine } from "../../src/change/space-engine.ts";
import { accountIdOf } from "../../src/crypto/account-id.ts";
import { cidFromDigest } from "../../src/crypto/cid.ts";
import { keyIdOf } from "../../src/crypto/seal.ts";
import { createSigner, type Signer } from "../../src/crypto/sign.ts";
import { createObjectService } from "../../src/domain/object/object-service.ts";
import { createRecordService } from "../../src/domain/record/record-service.ts";
import { createUpsertService } from "../../src/domain/record/upsert-service.ts";
import { createDatasetService } from "../../src/domain/type/dataset-service.ts";
import { createPropertyService } from "../../src/domain/type/property-service.ts";
import { createSchema, type Schema } from "../../src/domain/type/schema.ts";
import { createTypeService } from "../../src/domain/type/type-service.ts";
import { spaceDatasets } from "../../src/engine/built-in-datasets.ts";
import { openSpaceStore } from "../../src/store/space-store.ts";

const SPACE_ID = cidFromDigest(new Uint8Array(32).fill(7)) as SpaceId;
const READ_KEY = new Uint8Array(32).fill(9);

/** Whether the changes of an account count; a test may take the right away and give it back. */
export interface Rights {
  deny(author: Uint8Array): void;
  allow(author: Uint8Array): void;
}

export function createRights(): Rights & { counts(author: Uint8Array): boolean } {
  const denied = new Set<string>();
  const text = (key: Uint8Array) => Buffer.from(key).toString("hex");
  return {
    deny: (author) => void denied.add(text(author)),
    allow: (author) => void denied.delete(text(author)),
    counts: (author) => !denied.has(text(author)),
  };
}

export function createAuthor(seed: number): Signer {
  return createSigner(new Uint8Array(32).fill(seed));
}

export type SchemaReplica = ReturnType<typeof openSchemaReplica>;

export function openSchemaReplica(options: {
  dir: string;
  name: string;
  author: Signer;
  now: () => number;
  rights?: ReturnType<typeof createRights>;
}) {
  const { author } = options;
  const clock = { nowMs: options.now };
  const position = { id: new Uint8Array(32), pos: 0, clock: 0 };
  const acl: AclView = {
    head: () => position,
    at: () => position,
    counts: (change) => options.rights?.counts(change.author) ?? true,
  };
  const epoch = { id: keyIdOf(READ_KEY), key: READ_KEY };
  const keys: KeyRing = { current: () => epoch, byId: () => READ_KEY };
  const path = join(options.dir, `${options.name}.db`);

  const assemble = () => {
    const store = openSpaceStore(path);
    const schema: Schema = createSchema({ engine: () => engine, builtIns: spaceDatasets() });
    const engine = createChangeEngine({
      spaceId: SPACE_ID,
      store,
      acl,
      keys,
      registry: schema.registry,
      signer: author,
      clock,
      onFailure: (error) => {
        throw error;
      },
    });
    const requireWriter = () => {};
    const accountId = accountIdOf(author.publicKey);
    const records = createRecordService({ engine, schema, accountId, requireWriter, followLocal: () => {} });
    const objects = createObjectService({
      engine,
      schema,
      requireWriter,
      requireReader: () => {},
      setAccountValues: () => Promise.reject(new Error("these replicas keep no account values")),
      childrenOf: () => [],
    });
    return {
      engine,
      schema,
      records,
      objects,
      upserts: createUpsertService({ engine, records, accountId, clock, requireWriter }),
      types: createTypeService({ engine, schema, requireWriter, createRow: objects.writeNew }),
      properties: createPropertyService({ engine, schema, requireWriter }),
      datasets: createDatasetService({ engine, schema, requireWriter }),
    };
  };
  let open = assemble();

  const query = <T>(sql: string): T[] => open.engine.store.db.query<T, []>(sql).all();

  return {
    name: options.name,
    accountId: accountIdOf(author.publicKey),
    get services() {
      return open;
    },
    /** Every change, in the order in which it came here. */
    async packets(): Promise<Uint8Array[]> {
      await open.engine.idle();
      return query<{ bytes: Uint8Array }>("SELECT bytes FROM changes ORDER BY no").map((row) => row.bytes);
    },
    /** Every live row and tombstone of objects that are not deleted, with where it stands; local numbers left out. */
    async rowTexts(): Promise<string[]> {
      await open.engine.idle();
      const rows = query<{ objectId: Uint8Array | null; dataset: string | null; doc: string }>(
        `SELECT o.id AS objectId, d.name AS dataset, r.doc FROM rows r JOIN collections c ON c.no = r.collectionId
         LEFT JOIN objects o ON o.no = c.objectNo LEFT JOIN datasets d ON d.no = c.datasetNo WHERE r.state > 0 AND coalesce(o.deleted, 0) = 0`,
      );
      return rows
        .map(
          ({ objectId, dataset, doc }) =>
            `${objectId ? Buffer.from(objectId).toString("hex") : "*"} ${dataset ?? "objects"} ${doc}`,
        )
        .sort();
    },
    parkedCount: (): number => query<{ n: number }>("SELECT count(*) AS n FROM parked")[0]!.n,
    /** What callers see of the schema. */
    schemaText(): string {
      const { types, properties, datasets } = open;
      const declared = types.list().filter((type) => !type.builtIn);
      return JSON.stringify({
        types: declared,
        properties: declared.map(({ id }) => properties.list(id)),
        datasets: declared.map(({ id }) => datasets.list(id)),
        listing: datasets.listing(),
      });
    },
    async reopen(): Promise<void> {
      await open.engine.close();
      open = assemble();
    },
    close: () => open.engine.close(),
  };
}
