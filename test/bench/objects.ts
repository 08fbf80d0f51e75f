/** Many objects in one space: named in twenties, ranked by a property of their type. */
import type { Client, JsonObject } from "../support/server/client.ts";
import { createObject, createType } from "../support/server/fixtures.ts";

const IN_FLIGHT = 32;

export interface BenchObjects {
  /** The path of the rank in an object's row. */
  rank: string;
  /** The same as a JSON path of SQLite. */
  rankAt: string;
  create(index: number): Promise<unknown>;
}

/** The type that the objects carry. */
export async function prepareObjects(client: Client, spaceId: string, count: number): Promise<BenchObjects> {
  const { typeId } = await createType(client, spaceId);
  const { propId } = await client.post<{ propId: string }>(
    `/v1/spaces/${spaceId}/types/${typeId}/properties`,
    { name: "Rank", kind: "number" },
    201,
  );
  const body = (index: number): JsonObject => ({
    types: [typeId],
    initialProperties: { svc: { name: `name ${index % Math.floor(count / 20)}` }, [typeId]: { [propId]: index } },
  });
  return {
    rank: `${typeId}.${propId}`,
    rankAt: `$."${typeId}"."${propId}"`,
    create: (index) => createObject(client, spaceId, body(index)),
  };
}

/** Creates so many, 32 at a time; answers how many a second. */
export async function createAll({ create }: BenchObjects, count: number): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (next < count) await create(next++);
    }),
  );
  return count / ((performance.now() - startedAt) / 1000);
}
