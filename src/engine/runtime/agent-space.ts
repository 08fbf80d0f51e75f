import type { SpaceId } from "../../base/ids.ts";
import type { PropertyDef, TypeInfo } from "../../protocol/type.ts";
import type { SpaceServices } from "../boot/space-services.ts";
import { PROGRAM_SOURCE_DATASET, RUNS_DATASET, RUNTIME_DATASETS, TRIGGERS_DATASET } from "./agent-datasets.ts";

/** Name of the derived space, and slug of the election for it. */
export const AGENT = "agent";
const TRIGGER_TYPE = "agent_triggers";
const PROGRAM_TYPE = "program";
/** What the anchor holds. */
const HELD: ReadonlySet<string> = new Set([TRIGGERS_DATASET, RUNS_DATASET]);

/** Where the agent's things are. */
export interface AgentSpace {
  readonly spaceId: SpaceId;
  /** The object that holds triggers and runs. */
  readonly anchorId: string;
  /** The general chat. */
  readonly chatId: string;
  readonly programTypeId: string;
  /** Ids of the program type's properties. */
  readonly programName: string;
  readonly programVersion: string;
}

/**
 * Makes what the agent space holds, or finds it made, by nothing that a client could not do: two bundles, two types and
 * their datasets. Every step is found done when it is done again, so a crash between two leaves nothing to mend. The
 * general chat comes first: its bundle waits until what other devices have made is here.
 */
export async function installAgentSpace(services: SpaceServices): Promise<AgentSpace> {
  const { bundles, space } = services;
  const chat = await bundles.ensure({ id: "general-chat/v1", name: "General", rootTypes: ["chat"], derived: true });
  const triggerType = await ensureType(services, TRIGGER_TYPE, "Agent triggers");
  const programType = await ensureType(services, PROGRAM_TYPE, "Program");
  await ensureDatasets(services, triggerType.id, [TRIGGERS_DATASET, RUNS_DATASET]);
  await ensureDatasets(services, programType.id, [PROGRAM_SOURCE_DATASET]);
  const programName = await ensureProperty(services, programType.id, "name", "string");
  const programVersion = await ensureProperty(services, programType.id, "version", "number");
  const agent = await bundles.ensure({ id: "agent/v1", name: "Agent", rootTypes: [triggerType.id], derived: true });
  const anchorId = agent.bundle.rootId;
  await mendAnchor(services, anchorId);
  return {
    spaceId: space.id,
    anchorId,
    chatId: chat.bundle.rootId,
    programTypeId: programType.id,
    programName: programName.id,
    programVersion: programVersion.id,
  };
}

/**
 * Two devices that did not know of each other have made a type each. The datasets are the older one's then, and the
 * object that holds them has to carry it. Writes nothing where all is well.
 */
export async function mendAnchor({ datasets, objects, space }: SpaceServices, anchorId: string): Promise<void> {
  const carried = (objects.row(anchorId)?.["svc"] as { types?: string[] } | undefined)?.types ?? [];
  const missing = datasets
    .listing()
    .filter(({ name, typeId }) => HELD.has(name) && typeId !== undefined && !carried.includes(typeId))
    .map(({ typeId }) => typeId as string);
  if (missing.length === 0) return;
  await space.engine.write((tx) => {
    const anchor = tx.object(anchorId);
    for (const typeId of anchor ? new Set(missing) : []) objects.attachType(tx, anchor!, typeId);
  });
}

async function ensureType({ types }: SpaceServices, xKey: string, name: string): Promise<TypeInfo> {
  return types.list().find((type) => type.xKey === xKey) ?? types.create({ xKey, name });
}

async function ensureDatasets({ datasets }: SpaceServices, typeId: string, names: readonly string[]): Promise<void> {
  const known = new Set(datasets.listing().map(({ name }) => name));
  for (const name of names) if (!known.has(name)) await datasets.add(typeId, RUNTIME_DATASETS[name]!);
}

async function ensureProperty(
  { properties }: SpaceServices,
  typeId: string,
  xKey: string,
  kind: "string" | "number",
): Promise<PropertyDef> {
  const known = properties.list(typeId).find((property) => property.xKey === xKey);
  return known ?? properties.add(typeId, { name: xKey, xKey, kind });
}
