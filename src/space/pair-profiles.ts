import type { MemberMetadata } from "../acl/record/epoch.ts";
import { type RosterMember, rosterMember, rosterOf } from "../acl/reducer/roster.ts";
import type { AccountId } from "../base/ids.ts";
import type { DatasetRules } from "../change/codec/dataset-rules.ts";
import { ABOUT_FIELDS, setsAboutField } from "../change/codec/rule-parts.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import type { JsonObject } from "../protocol/json.ts";
import { refusal } from "../protocol/refusals.ts";
import type { Space } from "./space.ts";
import { SPACE_INDEX_TYPE, spaceIndexIn } from "./space-index.ts";

/**
 * What each of the two accounts of a one-to-one space says of itself, by account id. No ACL record follows the root there,
 * so profiles cannot travel in the ACL log.
 */
export const PAIR_PROFILES_DATASET = "pair_profiles";

export const PAIR_PROFILES_RULES: DatasetRules = {
  name: PAIR_PROFILES_DATASET,
  idRule: "user",
  skipHistory: true,
  refuseCreate: (id, _ops, { author }) => (id === author ? undefined : refusal("profile.of_another")),
  refuseDelete: () => refusal("profile.stays"),
  refuseOp(doc, segments, op, _creating, { author }) {
    if (doc["id"] !== author) return refusal("profile.of_another");
    return setsAboutField(segments, op) ? undefined : refusal("profile.field");
  },
};

function pairProfileOf(space: Space, identity: AccountId): MemberMetadata | undefined {
  const index = space.engine.object(space.engine.derivedId(SPACE_INDEX_TYPE, ""));
  const row = index && space.engine.record(index, PAIR_PROFILES_DATASET, identity);
  if (!row) return undefined;
  const profile: MemberMetadata = {};
  for (const field of ABOUT_FIELDS)
    if (typeof row[field] === "string" && row[field] !== "") profile[field] = row[field];
  return profile;
}

/** Writes this account's profile into a one-to-one space, unless it stands there already. Does nothing in other spaces. */
export async function writePairProfile(space: Space, profile: MemberMetadata | undefined): Promise<void> {
  if (space.header.kind !== "onetoone") return;
  const own = accountIdOf(space.accountKey);
  const known = pairProfileOf(space, own) ?? {};
  const fields: JsonObject = {};
  for (const field of ABOUT_FIELDS)
    if ((profile?.[field] ?? "") !== (known[field] ?? "")) fields[field] = profile?.[field] ?? "";
  if (Object.keys(fields).length === 0) return;
  await space.engine.write((tx) =>
    tx.append(
      spaceIndexIn(tx),
      {
        dataset: PAIR_PROFILES_DATASET,
        records: [{ id: own, upsert: true, ops: [{ type: "$set", path: "", value: fields }] }],
      },
      PAIR_PROFILES_RULES,
    ),
  );
}

/** Every account that ever had to do with a space, with its profile. */
export const rosterIn = (space: Space): RosterMember[] =>
  rosterOf(space.id, space.acl.state, space.keys).map((member) => introduced(space, member));

/** One of these accounts. */
export function memberIn(space: Space, account: Uint8Array): RosterMember | undefined {
  const member = rosterMember(space.id, space.acl.state, space.keys, account);
  return member && introduced(space, member);
}

function introduced(space: Space, member: RosterMember): RosterMember {
  const metadata = space.header.kind === "onetoone" ? pairProfileOf(space, member.identity) : undefined;
  return metadata ? { ...member, metadata } : member;
}
