import { svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { SpaceServices } from "../boot/space-services.ts";
import { PROGRAM_SOURCE_DATASET } from "./agent-datasets.ts";
import type { AgentSpace } from "./agent-space.ts";

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
export function createProgramStore(deps: { agent: AgentSpace; space(spaceId: string): Promise<SpaceServices> }) {
  const { agent } = deps;

  /** Ids of the type and its properties in a space; undefined where there are none. */
  const typeIn = ({ space, types, properties }: SpaceServices) => {
    if (space.id === agent.spaceId)
      return { typeId: agent.programTypeId, name: agent.programName, version: agent.programVersion };
    const typeId = types.list().find(({ xKey }) => xKey === "program")?.id;
    if (typeId === undefined) return undefined;
    const idOf = (key: string) => properties.list(typeId).find(({ xKey }) => xKey === key)?.id;
    const [name, version] = [idOf("name"), idOf("version")];
    return name === undefined || version === undefined ? undefined : { typeId, name, version };
  };
  /** The oldest of those that match: a name and a version are one program's. */
  const find = async (services: SpaceServices, { name, version }: ProgramSpec): Promise<string | undefined> => {
    const type = typeIn(services);
    if (!type) return undefined;
    const filter = { [`${type.typeId}.${type.name}`]: name, [`${type.typeId}.${type.version}`]: version };
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
      const objectId = await find(services, spec);
      return objectId === undefined ? undefined : codeOf(services, objectId);
    },

    /** Makes a program of the agent space, or gives a known one another source. */
    async put(name: string, version: number, code: string): Promise<ProgramInfo> {
      if (!NAME.test(name)) {
        const reason = "1 to 128 characters of A-Z, a-z, 0-9 and . _ -, the first a letter or a digit";
        throw svcError("request.invalid_field", { field: "name", reason }, `name is refused: it takes ${reason}`);
      }
      const services = await deps.space(agent.spaceId);
      const known = await find(services, { name, version });
      const objectId =
        known ??
        (
          await services.objects.create({
            types: [agent.programTypeId],
            initialProperties: {
              svc: { name: `${name}@v${version}` },
              [agent.programTypeId]: { [agent.programName]: name, [agent.programVersion]: version },
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
      const { typeId, name, version } = typeIn(services)!;
      const sort = [`${typeId}.${name}`, `${typeId}.${version}`];
      const { records } = await queries.query(queries.objectsSource(), { filter: { "svc.types": typeId }, sort });
      return records.map((text) => {
        const row = JSON.parse(text) as Record<string, Record<string, Json>>;
        return {
          objectId: row["id"] as unknown as string,
          name: String(row[typeId]?.[name] ?? ""),
          version: Number(row[typeId]?.[version] ?? 0),
        };
      });
    },
  };
}
