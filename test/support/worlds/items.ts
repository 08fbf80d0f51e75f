import { useServer } from "../rule.ts";
import type { Client, JsonObject, WriteResult } from "../server/client.ts";
import { type Collection, createCollection, createSpace, setFields } from "../server/fixtures.ts";

/** A server of the test file's own with one collection that takes any fields. */
export function useItems() {
  let items: Collection | undefined;
  let made = 0;
  const shared = useServer({}, async ({ client }) => {
    const space = await createSpace(client);
    items = await createCollection(client, space.id, { dynamic: true });
  });
  return {
    get client() {
      return shared.client;
    },
    get items(): Collection {
      if (!items) throw new Error("the collection of this file is not made yet");
      return items;
    },
    /** A record of its own for each test. */
    async record(fields: JsonObject = {}): Promise<string> {
      const id = `rec-${made++}`;
      await this.items.modify([setFields(id, fields)]);
      return id;
    },
    apply(id: string, ...ops: JsonObject[]): Promise<WriteResult> {
      return this.items.modify([{ id, ops }]);
    },
  };
}

/** A collection with a number, a text and a field that is written once. */
export const createWriteOnce = (client: Client, spaceId: string): Promise<Collection> =>
  createCollection(client, spaceId, {
    fields: [
      { key: "n", kind: "number", mutableBy: "any" },
      { key: "s", kind: "string", mutableBy: "any" },
      { key: "once", kind: "string" },
    ],
  });

/** Records `r0`, `r1`, … of an upsert. */
export const rowsOf = (count: number, fieldsOf: (index: number) => JsonObject) =>
  Array.from({ length: count }, (_, i) => ({ id: `r${i}`, fields: fieldsOf(i) }));

/** One op of a record, as it goes over the wire. */
export const op = (type: string, path?: string, value?: unknown): JsonObject =>
  ({ type, ...(path === undefined ? {} : { path }), ...(value === undefined ? {} : { value }) }) as JsonObject;
