import type { SpaceId } from "../../base/ids.ts";
import type { SpaceServices } from "../boot/space-services.ts";
import { PROGRAM_SOURCE_DATASET, RUNS_DATASET, RUNTIME_DATASETS, TRIGGERS_DATASET } from "./agent-datasets.ts";

/** Name of the derived space, and slug of the election for it. */
export const AGENT = "agent";
const TRIGGER_TYPE = "agent_triggers";
/** Key of the type of programs, in whatever space. */
export const PROGRAM_TYPE = "program";

/** Where the agent's things are. */
export interface AgentSpace {
  readonly spaceId: SpaceId;
  /** The object that holds triggers and runs. */
  readonly anchorId: string;
  /** The general chat. */
  readonly chatId: string;
}

/**
 * Makes what the agent space holds, or finds it made, by nothing that a client could not do: two bundles, two types and
 * their datasets. Every step is found done when it is done again, so a crash between two leaves nothing to mend; ids
 * follow from names, so that devices that do it apart have made the same. The general chat comes first: its bundle waits until what other devices have made is here.
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

/** Whoever has a name in the space has it: it may be a type that a client made. */
async function ensureDatasets({ datasets }: SpaceServices, typeId: string, names: readonly string[]): Promise<void> {
  const known = new Set(datasets.listing().map(({ name }) => name));
  for (const name of names) if (!known.has(name)) await datasets.add(typeId, RUNTIME_DATASETS[name]!);
}
