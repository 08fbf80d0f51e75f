import type { ChangeEngine } from "../../change/change-engine.ts";
import { fail } from "../../protocol/errors.ts";
import type { SchemaPort, WritableDataset } from "./port.ts";

/** The schema of an open space: what is built in, and what its types declare. */
export function createSchema(deps: {
  engine: () => ChangeEngine;
  builtIns: ReadonlyMap<string, WritableDataset>;
}): SchemaPort {
  return {
    registry: {
      rulesFor(dataset, definition) {
        const builtIn = deps.builtIns.get(dataset);
        if (builtIn) return { rules: builtIn.rules };
        return definition === undefined ? { unknown: true } : { missing: definition };
      },
    },
    datasetForWrite: (name) => deps.builtIns.get(name),
    typeId: (name) => (["svc", "nav", "chat", "editor", "page"].includes(name) ? name : undefined),
    checkValues(typeId, values, notFoundStatus) {
      for (const propId of Object.keys(values)) {
        if (typeId === "svc" && ["name", "description", "icon", "tags"].includes(propId)) continue;
        if (typeId === "nav" && ["type", "parentId", "pos"].includes(propId)) continue;
        throw Object.assign(fail("property.not_found", { propId, typeId }), { status: notFoundStatus });
      }
      return "synced";
    },
    declaredKind: () => undefined,
  };
}
