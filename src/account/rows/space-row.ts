import type { AclState, MemberState } from "../../acl/reducer/state.ts";
import { bytesToBase64, bytesToHex } from "../../base/bytes.ts";
import { deriveKey } from "../../crypto/derive.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { Space } from "../../space/space.ts";
import { spaceIndexIn } from "../../space/space-index.ts";
import type { TechSpace } from "../own-space/tech-space.ts";

/** Brings what a space's row says, on this device alone, in line with its ACL log. */
export async function alignLocalFields(tech: TechSpace, space: Space): Promise<void> {
  const row = tech.spaceRow(space.id);
  if (!row) return;
  const role = space.role();
  const fields: Record<string, Json> = {};
  if (row["ownRole"] !== role) fields["ownRole"] = role;
  // Kept when the membership ends, because what came under these keys before has still to be opened.
  const push = role === "none" ? undefined : pushKeys(space);
  if (push && !Bun.deepEquals(push, row["push"] as JsonObject | undefined)) fields["push"] = push;
  if (row["spaceIndexObjectId"] === undefined && role !== "none")
    fields["spaceIndexObjectId"] = (await space.engine.write(spaceIndexIn)).idText;
  if (Object.keys(fields).length > 0) await tech.setSpaceRow(space.id, {}, fields);
}

/** What this account is in a space's log; undefined while the log says nothing of it. */
export function ownMember(space: Space): MemberState | undefined {
  return memberIn(space.acl.state, space.accountKey);
}

function memberIn(state: AclState, account: Uint8Array): MemberState | undefined {
  return state.members.get(bytesToHex(account));
}

/**
 * The keys by which the members use a push node: one signs, one seals. Both are derived from the epoch's read key, so all
 * members have the same ones and a removed member lacks the next.
 */
export function pushKeys(space: Space): JsonObject | undefined {
  const current = space.keys.current();
  if (!current) return undefined;
  const encKey = deriveKey(current.key, "push-encryption", space.id);
  return {
    spaceKey: bytesToBase64(deriveKey(current.key, "push-signing", space.id)),
    encKey: bytesToBase64(encKey),
    encKeyId: bytesToHex(sha256(encKey)),
  };
}
