import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import { refusedPart } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { compareStrings } from "../../query/value/value-order.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceServices } from "../space-services.ts";
import { PROGRAM_SOURCE_DATASET } from "./agent-datasets.ts";
import { type AgentSpace, PROGRAM_TYPE } from "./agent-space.ts";

const RECORD = "main";
/** `<name>@v<N>`, or `<spaceId>:<name>@v<N>`: the version is exact. */
const SPEC = /^(?:([A-Za-z0-9]{20,}):)?([A-Za-z0-9][A-Za-z0-9._-]{0,127})@v(\d{1,9})$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export interface ProgramSpec {
  readonly spaceId?: string;
  readonly name: string;
  readonly version: number;
}

export interface ProgramInfo {
  readonly objectId: string;
  readonly name: string;
  readonly version: number;
}

export function readProgramSpec(spec: string): ProgramSpec | undefined {
  const [, spaceId, name, version] = SPEC.exec(spec) ?? [];
  if (name === undefined) return undefined;
  return { ...(spaceId === undefined ? {} : { spaceId }), name, version: Number(version) };
}

export type ProgramStore = ReturnType<typeof createProgramStore>;

/** Program objects: of the agent space, or of another space that has the type by its key. */
export function createProgramStore(deps: {
  agent: AgentSpace;
  events: Pick<SpaceEvents, "on">;
  space(spaceId: string): Promise<SpaceServices>;
}) {
  const { agent } = deps;
  /**
   * Programs of the agent space that were looked up; forgotten when the row of any object there changes, except that of the runs.
   */
  const knownBySpec = new Map<string, string>();
  const unfollow = deps.events.on("committed", (space, { touched }) => {
    const isProgram = touched.some(
      ({ dataset, recordId }) => dataset === OBJECTS_DATASET && recordId !== agent.anchorId,
    );
    if (space.id === agent.spaceId && isProgram) knownBySpec.clear();
  });

  /**
   * Returns the current ids of the type and its properties in a space; undefined where there are none. Devices that created them
   * separately have each declared a property, and all of those hold names and versions.
   */
  const typeIn = ({ types, properties }: SpaceServices) => {
    const typeId = types.list().find(({ xKey }) => xKey === PROGRAM_TYPE)?.id;
    if (typeId === undefined) return undefined;
    const idsOf = (key: string) =>
      properties
        .list(typeId)
        .filter(({ xKey }) => xKey === key)
        .map(({ id }) => id);
    return { typeId, names: idsOf("name"), versions: idsOf("version") };
  };
  /** Returns the oldest match: a name and a version identify one program. */
  const find = async (services: SpaceServices, { name, version }: ProgramSpec): Promise<string | undefined> => {
    const type = typeIn(services);
    const either = type?.names.flatMap((nameId) =>
      type.versions.map((versionId) => ({
        [`${type.typeId}.${nameId}`]: name,
        [`${type.typeId}.${versionId}`]: version,
      })),
    );
    if (!either || either.length === 0) return undefined;
    const filter = either.length === 1 ? either[0]! : { $or: either };
    const body = { filter, sort: ["_ver.id"], limit: 1 };
    const { records } = await services.queries.query(services.queries.objectsSource(), body);
    return records[0] === undefined ? undefined : ((JSON.parse(records[0]) as JsonObject)["id"] as string);
  };
  const codeOf = (services: SpaceServices, objectId: string): string | undefined => {
    const { engine } = services.space;
    const object = engine.object(objectId);
    const code = object && engine.record(object, PROGRAM_SOURCE_DATASET, RECORD)?.["code"];
    return typeof code === "string" ? code : undefined;
  };

  return {
    /** The source that a spec names, as it is now; undefined where there is none. */
    async source(spec: ProgramSpec): Promise<string | undefined> {
      const services = await deps.space(spec.spaceId ?? agent.spaceId);
      const isOwn = services.space.id === agent.spaceId;
      const key = `${spec.name}@v${spec.version}`;
      const objectId = (isOwn ? knownBySpec.get(key) : undefined) ?? (await find(services, spec));
      if (objectId === undefined) return undefined;
      if (isOwn) knownBySpec.set(key, objectId);
      return codeOf(services, objectId);
    },

    close: unfollow,

    /** Makes a program of the agent space, or gives a known one another source. */
    async put(name: string, version: number, code: string): Promise<ProgramInfo> {
      if (!NAME.test(name)) {
        throw refusedPart("request.invalid_field", { field: "name" }, refusal("program.name"), "takes");
      }
      const services = await deps.space(agent.spaceId);
      const { typeId, names, versions } = typeIn(services)!;
      const known = await find(services, { name, version });
      const objectId =
        known ??
        (
          await services.objects.create({
            types: [typeId],
            initialProperties: {
              svc: { name: `${name}@v${version}` },
              [typeId]: { [names[0]!]: name, [versions[0]!]: version },
            },
          })
        ).id;
      await services.records.modify({
        objectId,
        dataset: PROGRAM_SOURCE_DATASET,
        records: [{ id: RECORD, upsert: true, ops: [{ type: "$set", path: "code", value: code }] }],
      });
      return { objectId, name, version };
    },

    async get(name: string, version: number): Promise<(ProgramInfo & { code: string }) | undefined> {
      const services = await deps.space(agent.spaceId);
      const objectId = await find(services, { name, version });
      const code = objectId === undefined ? undefined : codeOf(services, objectId);
      return objectId === undefined || code === undefined ? undefined : { objectId, name, version, code };
    },

    async list(): Promise<ProgramInfo[]> {
      const services = await deps.space(agent.spaceId);
      const { queries } = services;
      const { typeId, names, versions } = typeIn(services)!;
      const { records } = await queries.query(queries.objectsSource(), { filter: { "svc.types": typeId } });
      const programs = records.map((text) => {
        const row = JSON.parse(text) as Record<string, Record<string, Json>>;
        const firstOf = (ids: readonly string[]) => ids.map((id) => row[typeId]?.[id]).find((value) => value != null);
        return {
          objectId: row["id"] as unknown as string,
          name: String(firstOf(names) ?? ""),
          version: Number(firstOf(versions) ?? 0),
        };
      });
      return programs.sort((one, other) => compareStrings(one.name, other.name) || one.version - other.version);
    },
  };
}
