import { SPACE_TYPE } from "../../acl/record/space-header.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import { spaceIndexIdOf } from "../../space/space-index.ts";
import { spaceStatusOf } from "../own-space/space-status.ts";

/** What the row of a space says about it, as callers see it. Empty fields are omitted (SPACE-1). */
export function spaceInfoOf(row: JsonObject): SpaceInfo {
  const status = spaceStatusOf(row);
  const info: SpaceInfo = {
    id: row["id"] as string,
    createdAt: row["createdAt"] as SpaceInfo["createdAt"],
    spaceType: (row["spaceType"] as SpaceInfo["spaceType"] | undefined) ?? SPACE_TYPE,
    // An account that left counts as no member any more, even while others have not heard of it.
    ownRole: status === "deleted" ? "none" : ((row["ownRole"] as SpaceInfo["ownRole"] | undefined) ?? "none"),
    status,
  };
  for (const field of ["name", "description", "iconCid", "author"] as const) {
    const value = row[field];
    if (typeof value === "string" && value !== "") info[field] = value;
  }
  if (info.status === "active")
    info.spaceIndexObjectId = (row["spaceIndexObjectId"] as string | undefined) ?? spaceIndexIdOf(info.id);
  const settings = row["settings"] as SpaceInfo["settings"];
  if (settings && Object.keys(settings).length > 0) info.settings = settings;
  if (row["push"]) info.push = row["push"] as NonNullable<SpaceInfo["push"]>;
  if (row["derived"] === true) info.derived = true;
  const ended = row["ended"] as SpaceInfo["ended"];
  if (ended && (status === "deleted" || status === "guest_revoked")) info.ended = ended;
  return info;
}
