import { TYPE_MARKER } from "../api/object-row.ts";
import { typeApi } from "../api/type-api.ts";
import { useLoaded } from "../state/use-loaded.ts";

/** The names of a space's types, by id; an unknown id is shown itself. */
export function useTypeNames(spaceId: string): (typeId: string) => string {
  const { value: types } = useLoaded(() => typeApi.list(spaceId), spaceId);
  const nameById = new Map(types?.map(({ id, name, xKey, builtIn }) => [id, builtIn ? id : name || xKey || id]));
  return (typeId) => (typeId === TYPE_MARKER ? "type" : (nameById.get(typeId) ?? typeId));
}
