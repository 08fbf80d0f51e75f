import { equalBytes } from "../../base/bytes.ts";
import type { ChangeTable, StoredChange } from "../../store/change-table.ts";
import { parseVersion } from "../codec/version.ts";

/** The change of an object that a text of `_ver` names; undefined where there is none, and for any other text. */
export function namedChange(
  changes: Pick<ChangeTable, "atLamport">,
  objectNo: number,
  version: string,
): StoredChange | undefined {
  const position = parseVersion(version);
  if (!position) return undefined;
  const { lamport, idPrefix } = position;
  return changes.atLamport(objectNo, lamport).find(({ id }) => equalBytes(id.subarray(0, idPrefix.length), idPrefix));
}
