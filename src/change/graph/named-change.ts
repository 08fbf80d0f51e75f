import { equalBytes } from "../../base/bytes.ts";
import type { ChangeTable, StoredChange } from "../../store/tables/change-table.ts";
import { parseVersion, writerName } from "../codec/version.ts";
import type { ObjectEntry } from "./object-cache.ts";

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

/** What others ask of the changes that such texts name. */
export function createChangeNames(changes: ChangeTable, objectOf: (objectId: string) => ObjectEntry | undefined) {
  const named = (objectId: string, version: string): StoredChange | undefined => {
    const object = objectOf(objectId);
    return object && namedChange(changes, object.no, version);
  };
  return {
    changeNo: (objectId: string, version: string): number | undefined => named(objectId, version)?.no,
    /** Which writer's which change it is. Writers are named by a short hash. */
    originOf(objectId: string, version: string): { writer: string; seq: number } | undefined {
      const change = named(objectId, version);
      const writtenBy = change && changes.writerByNo(change.writer);
      return writtenBy && { writer: writerName(writtenBy.author, writtenBy.id), seq: change.seq };
    },
  };
}
