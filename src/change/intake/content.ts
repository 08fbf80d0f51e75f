import { utf8ToBytes } from "../../base/bytes.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import type { PendingBodyWait } from "../../store/tables/pending-body-table.ts";
import type { OpenedBody } from "../codec/body-opener.ts";
import type { ChangeBody } from "../codec/change-body.ts";
import type { DatasetRules } from "../codec/dataset-rules.ts";
import type { RulesRegistry } from "../codec/ports.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";

/** What a change does, as far as it is known here. */
export type Content =
  | { body: ChangeBody; rules: DatasetRules }
  | { wait: PendingBodyWait; what: Uint8Array }
  /** Nothing, on any device. */
  | { broken: Refusal };

/** The content of the change `id`, of which `opened` became. */
export function contentOf(opened: OpenedBody, id: Uint8Array, registry: RulesRegistry): Content {
  if ("stub" in opened) return { wait: "body", what: id };
  if ("missingKey" in opened) return { wait: "key", what: opened.missingKey };
  if ("broken" in opened) return opened;
  const answer = registry.rulesFor(opened.body.dataset, opened.body.definition);
  if ("missing" in answer) return { wait: "definition", what: utf8ToBytes(answer.missing) };
  if ("unknown" in answer) return { wait: "version", what: new Uint8Array(0) };
  return { body: opened.body, rules: answer.rules };
}

/**
 * Nobody will ever read it: its object was deleted long ago, or its author never was a member. A definition is kept,
 * because others may have written under it, and so is what cannot be read yet, because it may be a definition.
 */
export function isNeedless(
  content: Content,
  object: Pick<ObjectEntry, "purged">,
  isStranger: boolean,
  registry: RulesRegistry,
): boolean {
  if ("body" in content && registry.outlives?.(content.body.dataset)) return false;
  return isStranger || (object.purged && !("wait" in content));
}
