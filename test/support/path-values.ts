/** Real ids for the placeholders of documented paths, so that a request is judged by its body, not by its path. */
import type { Client } from "./server/client.ts";
import { type Collection, createCollection, createSpace } from "./server/fixtures.ts";

export interface PathValues {
  items: Collection;
  values: Record<string, string>;
  /** True when every placeholder of the path has a real value. */
  covers(path: string): boolean;
}

export async function createPathValues(client: Client): Promise<PathValues> {
  const space = await createSpace(client);
  const items = await createCollection(client, space.id);
  const account = await client.get<{ id: string; peerId: string }>("/v1/account");
  const values: Record<string, string> = {
    spaceId: space.id,
    objectId: items.objectId,
    typeId: items.typeId,
    identity: account.id,
    peerId: account.peerId,
    name: "agent",
  };
  return {
    items,
    values,
    covers: (path) => [...path.matchAll(/\{([^}]+)\}/g)].every((match) => values[match[1]!] !== undefined),
  };
}
