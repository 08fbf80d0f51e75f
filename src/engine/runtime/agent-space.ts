import type { SpaceId } from "../../base/ids.ts";
import type { SpaceServices } from "../space-services.ts";
import { PROGRAM_SOURCE_DATASET, RUNS_DATASET, RUNTIME_DATASETS, TRIGGERS_DATASET } from "./agent-datasets.ts";

/** Name of the derived space, and slug of the election for it. */
export const AGENT = "agent";
const TRIGGER_TYPE = "agent_triggers";
/** The key of the type of programs, in any space. */
export const PROGRAM_TYPE = "program";

/** Where the agent's objects are. */
export interface AgentSpace {
  readonly spaceId: SpaceId;
  /** The object that holds triggers and runs. */
  readonly anchorId: string;
  /** The general chat. */
  readonly chatId: string;
}

/**
 * Installs what the agent space holds, if it is not there, using only what a client could use: two bundles, two types and their
 * datasets. Each step does nothing when it was done before, so a crash between two steps leaves nothing to repair. Ids follow
 * from names, so devices that install separately make the same objects. The general chat comes first, because its bundle waits
 * until the objects that other devices made are here.
 */
export async function installAgentSpace(services: SpaceServices): Promise<AgentSpace> {
  const { bundles, properties, space, types } = services;
  const chat = await bundles.ensure({ id: "general-chat/v1", name: "General", rootTypes: ["chat"], derived: true });
  const triggerType = await types.create({ xKey: TRIGGER_TYPE, name: "Agent triggers", derived: true });
  const programType = await types.create({ xKey: PROGRAM_TYPE, name: "Program", derived: true });
  await ensureDatasets(services, triggerType.id, [TRIGGERS_DATASET, RUNS_DATASET]);
  await ensureDatasets(services, programType.id, [PROGRAM_SOURCE_DATASET]);
  await properties.add(programType.id, { name: "name", xKey: "name", kind: "string", derived: true });
  await properties.add(programType.id, { name: "version", xKey: "version", kind: "number", derived: true });
  const agent = await bundles.ensure({ id: "agent/v1", name: "Agent", rootTypes: [triggerType.id], derived: true });
  return { spaceId: space.id, anchorId: agent.bundle.rootId, chatId: chat.bundle.rootId };
}

/** Accepts a dataset name that is already taken in the space, even by a type that a client made. */
async function ensureDatasets({ datasets }: SpaceServices, typeId: string, names: readonly string[]): Promise<void> {
  const known = new Set(datasets.listing().map(({ name }) => name));
  for (const name of names) if (!known.has(name)) await datasets.add(typeId, RUNTIME_DATASETS[name]!);
}
