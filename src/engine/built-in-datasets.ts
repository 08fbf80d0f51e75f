import { PRIVATE_RULES } from "../account/own-space/private-datasets.ts";
import { TECH_RULES } from "../account/own-space/tech-datasets.ts";
import { DELETION_RULES } from "../change/fold/deletion-log.ts";
import { BUNDLE_CHILD_TYPE, BUNDLE_CHILDREN_RULES, BUNDLE_RULES } from "../domain/bundle/bundle-rules.ts";
import { CHAT_RULES } from "../domain/chat/chat-rules.ts";
import { checkRawMessageOp, completeRawMessages, rawFlagFault } from "../domain/chat/raw-message.ts";
import { EDITOR_RULES } from "../domain/editor/editor-rules.ts";
import { FILE_RULES } from "../domain/file/file-rules.ts";
import { OBJECT_RULES } from "../domain/object/object-rules.ts";
import { DEFINITION_RULES } from "../domain/type/definition-rules.ts";
import type { WritableDataset } from "../domain/type/port.ts";
import { PAIR_PROFILES_RULES } from "../space/pair-profiles.ts";
import { SPACE_INDEX_RULES } from "../space/space-index.ts";

/** Datasets that every shared space has, with the rules they fold under. */
export function spaceDatasets(): ReadonlyMap<string, WritableDataset> {
  const datasets: WritableDataset[] = [
    { rules: OBJECT_RULES },
    {
      rules: CHAT_RULES,
      typeId: "chat",
      content: true,
      localFault: rawFlagFault,
      checkOp: checkRawMessageOp,
      complete: completeRawMessages,
    },
    { rules: EDITOR_RULES, typeId: "editor", content: true },
    { rules: SPACE_INDEX_RULES, internal: true },
    { rules: PAIR_PROFILES_RULES, internal: true },
    { rules: BUNDLE_RULES, internal: true },
    { rules: BUNDLE_CHILDREN_RULES, internal: true },
    { rules: DELETION_RULES, internal: true },
    { rules: FILE_RULES, internal: true },
    ...DEFINITION_RULES.map((rules) => ({ rules, internal: true })),
  ];
  return new Map(datasets.map((dataset) => [dataset.rules.name, dataset]));
}

/** Datasets of the tech space; the server alone writes to them. */
export function techDatasets(): ReadonlyMap<string, WritableDataset> {
  const rules = [...TECH_RULES, ...PRIVATE_RULES, DELETION_RULES];
  return new Map(rules.map((each) => [each.name, { rules: each, internal: true }]));
}

/** Derived objects of these types are deleted with the object to which they belong. */
export const endsWithItsRoot = (derivedType: string): boolean => derivedType === BUNDLE_CHILD_TYPE;
