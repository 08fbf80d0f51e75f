/** A type in a space of its own, whose datasets tests declare and read back. */
import type { Client, JsonObject } from "../server/client.ts";
import {
  type Collection,
  createObject,
  createSpace,
  createType,
  type DatasetDraft,
  openCollection,
  uniqueName,
} from "../server/fixtures.ts";

/** A declared dataset, opened in an object of the type. */
interface Declared extends Collection {
  readonly defId: string;
  /** Where its definition stands. */
  readonly def: string;
}

interface Listed {
  readonly name: string;
  readonly schema: JsonObject;
  readonly typeId?: string;
}

export type DeclaringType = Awaited<ReturnType<typeof createDeclaringType>>;

export async function createDeclaringType(client: Client) {
  const space = await createSpace(client);
  const { typeId } = await createType(client, space.id);
  const base = `/v1/spaces/${space.id}`;
  const definitions = `${base}/types/${typeId}/datasets`;
  const definition = async (defId: string): Promise<JsonObject> => {
    const { datasets } = await client.get<{ datasets: JsonObject[] }>(definitions);
    return datasets.find((each) => each["id"] === defId)!;
  };
  return {
    typeId,
    /** The path of the space. */
    base,
    /** Where definitions are posted and listed. */
    definitions,
    definition,
    async declare(draft: Partial<DatasetDraft> & JsonObject): Promise<Declared> {
      const name = uniqueName("d");
      const body = { name, idRule: "user", fields: [], ...draft };
      const { datasetDefId } = await client.post<{ datasetDefId: string }>(definitions, body, 201);
      const object = await createObject(client, space.id, { types: [typeId] });
      const ids = { spaceId: space.id, typeId, objectId: object.id, dataset: name };
      return { ...openCollection(client, ids), defId: datasetDefId, def: `${definitions}/${datasetDefId}` };
    },
    /** What the space's listing says of a dataset. */
    async listing(name: string): Promise<Listed | undefined> {
      const { datasets } = await client.get<{ datasets: Listed[] }>(`${base}/datasets`);
      return datasets.find((each) => each.name === name);
    },
    addField: (items: Declared, draft: JsonObject): Promise<{ fieldDefId: string }> =>
      client.post(`${items.def}/fields`, draft, 201),
    fieldsOf: async (items: Declared): Promise<JsonObject[]> =>
      (await definition(items.defId))["fields"] as JsonObject[],
  };
}
