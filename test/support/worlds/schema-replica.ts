/**
 * Replicas of one space with types, datasets and records: the change engine with the services over it, each in a
 * database file of its own, several accounts that may all write. Changes travel as bytes.
 */
import { join } from "node:path";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { createSigner, type Signer } from "../../../src/crypto/sign.ts";
import { createObjectService } from "../../../src/domain/object/object-service.ts";
import { createRecordService } from "../../../src/domain/record/record-service.ts";
import { createUpsertService } from "../../../src/domain/record/upsert-service.ts";
import { createDatasetService } from "../../../src/domain/type/dataset-service.ts";
import { createDefinitionRegistry } from "../../../src/domain/type/definition-registry.ts";
import { createPropertyService } from "../../../src/domain/type/property-service.ts";
import { createSchema } from "../../../src/domain/type/schema.ts";
import { createTypeService } from "../../../src/domain/type/type-service.ts";
import { spaceDatasets } from "../../../src/engine/built-in-datasets.ts";
import { openSpaceStore } from "../../../src/store/space-store.ts";
import { COMMON_GENESIS, changesOf, openEngine, type Rights } from "./open-engine.ts";

export function createAuthor(seed: number): Signer {
  return createSigner(new Uint8Array(32).fill(seed));
}

export type SchemaReplica = ReturnType<typeof openSchemaReplica>;

export function openSchemaReplica(options: {
  dir: string;
  name: string;
  author: Signer;
  now: () => number;
  rights?: Rights;
}) {
  const { author, rights } = options;
  const clock = { nowMs: options.now };
  const onFailure = (error: unknown) => {
    throw error;
  };

  const assemble = () => {
    const store = openSpaceStore(join(options.dir, `${options.name}.db`));
    const builtIns = spaceDatasets();
    const registry = createDefinitionRegistry(store.schema, builtIns);
    const more = { store, registry, rights, onFailure };
    const engine = openEngine(options.dir, options.name, COMMON_GENESIS, { signer: author }, [], options.now, more);
    const schema = createSchema({ engine, events: engine.events, typeRows: store.schema.typeRows, registry, builtIns });
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
      store,
      registry,
      schema,
      records,
      objects,
      upserts: createUpsertService({ engine, records, accountId, clock, requireWriter }),
      types: createTypeService({
        engine,
        schema,
        requireWriter,
        createRow: objects.writeNew,
        fillRow: objects.fillDerived,
        linksTo: store.schema.linksTo,
      }),
      properties: createPropertyService({ engine, schema, requireWriter }),
      datasets: createDatasetService({ engine, schema, requireWriter }),
    };
  };
  let open = assemble();

  const query = <T>(sql: string): T[] => open.store.db.query<T, []>(sql).all();

  return {
    name: options.name,
    accountId: accountIdOf(author.publicKey),
    get services() {
      return open;
    },
    /** Every change, in the order in which it came here. */
    packets: (): Promise<Uint8Array[]> => changesOf(open.engine),
    /** Every live row and tombstone of objects that are not deleted, with where it stands; local numbers left out. */
    async rowTexts(): Promise<string[]> {
      await open.engine.idle();
      const rows = query<{ objectId: Uint8Array | null; dataset: string | null; doc: string }>(
        // An expression has no declared type: rows of objects themselves have neither of both.
        `SELECT ifnull(o.id, NULL) AS objectId, ifnull(d.name, NULL) AS dataset, r.doc FROM rows r JOIN collections c ON c.no = r.collectionId
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
