import { TYPE_MARKER } from "../api/object-row.ts";
import { typeApi } from "../api/type-api.ts";
import { useLoaded } from "../state/use-loaded.ts";

/** What a space's types are called, by id; ids that are not known stand for themselves. */
export function useTypeNames(spaceId: string): (typeId: string) => string {
  const { value: types } = useLoaded(() => typeApi.list(spaceId), spaceId);
  const nameById = new Map(types?.map(({ id, name, xKey, builtIn }) => [id, builtIn ? id : name || xKey || id]));
  return (typeId) => (typeId === TYPE_MARKER ? "type" : (nameById.get(typeId) ?? typeId));
}
