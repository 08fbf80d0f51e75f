import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { namedBy, setsText } from "../../change/codec/rule-parts.ts";
import type { Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";

/** Datasets of the tech space that no endpoint shows: what an account keeps to itself, the same on all its devices. */
export const READ_FRONTIERS_DATASET = "read_frontiers";
export const ACCOUNT_VALUES_DATASET = "account_values";
export const SPACE_ROOTS_DATASET = "space_roots";
export const ACL_SECRETS_DATASET = "acl_secrets";

/**
 * How far an object was read: for each writer the highest seq of its changes that was read. A frontier only moves forward,
 * in whatever order changes come in, so the union of what all devices have read counts.
 */
export const READ_FRONTIERS_RULES: DatasetRules = {
  name: READ_FRONTIERS_DATASET,
  idRule: "user",
  skipHistory: true,
  ...namedBy("object"),
  refuseDelete: () => refusal("frontier.stays"),
  refuseOp(doc, segments, op) {
    if (op.type !== "$set") return refusal("frontier.set");
    if (segments.length === 1 && segments[0] === "spaceId") return undefined;
    if (segments.length !== 2 || segments[0] !== "writers" || typeof op.value !== "number")
      return refusal("frontier.field");
    const known = (doc["writers"] as Record<string, Json> | undefined)?.[segments[1]!];
    return typeof known === "number" && known >= op.value ? refusal("frontier.behind") : undefined;
  },
};

/** Values of properties with scope `account`, by object: mirrored into the object's row on each device. */
export const ACCOUNT_VALUES_RULES: DatasetRules = {
  name: ACCOUNT_VALUES_DATASET,
  idRule: "user",
  skipHistory: true,
  ...namedBy("object"),
};

/**
 * What another device of the account needs to make a space there: header and first record of the ACL log (base64),
 * set once, and the secret of its present place on the network.
 */
export const SPACE_ROOTS_RULES: DatasetRules = {
  name: SPACE_ROOTS_DATASET,
  idRule: "user",
  skipHistory: true,
  ...namedBy("space"),
  refuseDelete: () => refusal("space_root.stays"),
  refuseOp(doc, segments, op) {
    const [field] = segments;
    if (segments.length !== 1 || (field !== "header" && field !== "aclRoot" && field !== "transport"))
      return refusal("space_root.field");
    if (!setsText(op)) return refusal("field.text");
    return field !== "transport" && Object.hasOwn(doc, field) ? refusal("field.set_once") : undefined;
  },
};

const SECRET_FIELDS: readonly string[] = ["token", "hint", "asked", "place", "adder", "former", "again"];

/**
 * Secrets of a space's invites and guest keys (`invites.<hex of the public key>` and `guests.<…>`: the base64 seed) that this
 * account minted, and the token (`token`) by which it joined, with what it says of itself (`hint`, JSON) and its request
 * (`asked`, base64), or the secret of the place on the network (`place`, base64) of a space it was added to and by whom
 * (`adder`): what its other devices need to show and to use them. And of a membership that this account has ended, the record with
 * which it began (`former`, base64), and when it joined again after that (`again`, Unix milliseconds).
 */
export const ACL_SECRETS_RULES: DatasetRules = {
  name: ACL_SECRETS_DATASET,
  idRule: "user",
  skipHistory: true,
  ...namedBy("space"),
  refuseDelete: () => refusal("secret.stays"),
  refuseOp(_doc, segments, op) {
    const [field, key] = segments;
    const known =
      field !== undefined && SECRET_FIELDS.includes(field)
        ? segments.length === 1
        : (field === "invites" || field === "guests") && key !== undefined;
    if (!known || segments.length > 2) return refusal("secret.field");
    return op.type === "$unset" || setsText(op) ? undefined : refusal("secret.text");
  },
};

export const PRIVATE_RULES: readonly DatasetRules[] = [
  READ_FRONTIERS_RULES,
  ACCOUNT_VALUES_RULES,
  SPACE_ROOTS_RULES,
  ACL_SECRETS_RULES,
];
