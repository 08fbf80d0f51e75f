import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import type { RulesRegistry } from "../../change/codec/ports.ts";
import { refusal } from "../../protocol/refusals.ts";
import { StoredFileError } from "../../protocol/storage-fault.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { decodeDeclaration, parseDefinitionName } from "./declaration.ts";
import { compileDeclaration, type DeclaredRules } from "./declared-rules.ts";
import { VERSIONS_DATASET } from "./definition-datasets.ts";
import { versionsIn } from "./definition-rules.ts";
import type { WritableDataset } from "./port.ts";

const MAX_COMPILED = 2_000;

/** The rules that changes of a space fold under: built in, or by the version of a definition that a change names. */
export interface DefinitionRegistry extends RulesRegistry {
  /** The compiled rules of a version that is known here. */
  compiled(versionId: string): DeclaredRules | undefined;
}

export function createDefinitionRegistry(
  table: Pick<SpaceStore["schema"], "declaration" | "addDeclaration">,
  builtIns: ReadonlyMap<string, WritableDataset>,
  endsWithItsRoot: RulesRegistry["endsWithItsRoot"] = () => false,
): DefinitionRegistry {
  /** By content: an entry never goes stale. Whether its version is known is asked of the store each time. */
  const compiledById = new Map<string, DeclaredRules>();

  const compiled = (versionId: string): DeclaredRules | undefined => {
    const text = table.declaration(versionId);
    if (text === undefined) return undefined;
    const known = compiledById.get(versionId);
    if (known) return known;
    const declaration = decodeDeclaration(text);
    if (!declaration) throw new StoredFileError("damaged", `the stored definition ${versionId} does not read`);
    if (compiledById.size >= MAX_COMPILED) compiledById.clear();
    const rules = compileDeclaration(declaration);
    compiledById.set(versionId, rules);
    return rules;
  };

  return {
    compiled,
    rulesFor(dataset, definition) {
      const builtIn = builtIns.get(dataset);
      if (builtIn) return { rules: builtIn.rules };
      if (definition === undefined) return { unknown: true };
      const name = parseDefinitionName(definition);
      if (!name) return { rules: refuseAll(dataset) };
      const declared = compiled(name.versionId);
      if (!declared) return { missing: definition };
      return { rules: declared.rules.name === dataset ? declared.rules : refuseAll(dataset) };
    },
    learn(objectId, body) {
      if (body.dataset !== VERSIONS_DATASET) return [];
      return versionsIn(objectId, body.records).map(({ name, id, text }) => {
        table.addDeclaration(id, text);
        return name;
      });
    },
    endsWithItsRoot,
    outlives: (dataset) => dataset === VERSIONS_DATASET,
  };
}

/** A change that names a definition of another dataset, or none at all, has no effect, on any device. */
function refuseAll(name: string): DatasetRules {
  const refuse = () => refusal("definition.unnamed");
  return { name, idRule: "user", refuseCreate: refuse, refuseDelete: refuse, refuseOp: refuse };
}
