import type { JsonObject } from "../hostile/wire-types.ts";
import { useServer } from "../rule.ts";
import { type CreatedType, createObject, createSpace, createType } from "../server/fixtures.ts";

export interface Property extends JsonObject {
  id: string;
  propId: string;
}

/** A server of the test file's own with a space and a type to which properties are added. */
export function useTypedSpace() {
  let made: { spaceId: string; type: CreatedType } | undefined;
  const shared = useServer({}, async ({ client }) => {
    const spaceId = (await createSpace(client)).id;
    made = { spaceId, type: await createType(client, spaceId, "task") };
  });
  const get = () => {
    if (!made) throw new Error("the type of this file is not made yet");
    return made;
  };
  const spaceId = (): string => get().spaceId;
  const typeId = (): string => get().type.typeId;
  const S = () => `/v1/spaces/${spaceId()}`;
  const T = () => `${S()}/types/${typeId()}`;
  return {
    shared,
    spaceId,
    typeId,
    S,
    T,
    add: (draft: JsonObject, path = T()): Promise<Property> =>
      shared.client.post<Property>(`${path}/properties`, draft, 201),
    async find(propId: string, path = T()): Promise<JsonObject | undefined> {
      const { properties } = await shared.client.get<{ properties: JsonObject[] }>(`${path}/properties`);
      return properties.find((property) => property["id"] === propId);
    },
    patch: (propId: string, body: JsonObject) =>
      shared.client.request("PATCH", `${T()}/properties/${propId}`, { body }),
    /** An object that carries the type. */
    holder: async (): Promise<string> => (await createObject(shared.client, spaceId(), { types: [typeId()] })).id,
    set: (objectId: string, values: JsonObject) =>
      shared.client.request("POST", `${S()}/properties/${objectId}/set/${typeId()}`, { body: { patch: values } }),
    row: async (objectId: string): Promise<JsonObject> =>
      (await shared.client.get<{ record: JsonObject }>(`${S()}/properties/${objectId}`)).record,
  };
}
