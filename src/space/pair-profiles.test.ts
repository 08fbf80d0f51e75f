import { expect, test } from "bun:test";
import type { AccountId, ObjectId, SpaceId } from "../base/ids.ts";
import type { RecordOp } from "../change/codec/change-body.ts";
import type { ChangeEnvelope } from "../change/codec/dataset-rules.ts";
import { LIMITS } from "../protocol/limits.ts";
import { refusal } from "../protocol/refusals.ts";
import { PAIR_PROFILES_RULES as rules } from "./pair-profiles.ts";
import { SPACE_INDEX_RULES } from "./space-index.ts";

const by = (author: string): ChangeEnvelope => ({
  version: "1",
  changeId: new Uint8Array(32),
  author: author as AccountId,
  timeMs: 0,
  spaceId: "space" as SpaceId,
  objectId: "object" as ObjectId,
});
const set = (value: string | number): RecordOp => ({ type: "$set", path: "name", value });
const refuse = (id: string, author: string, op: RecordOp, segments = ["name"]) =>
  rules.refuseOp?.({ id }, segments, op, false, by(author));

test("[SPACE-4] each of the two speaks of itself alone, in the fields of a profile", () => {
  expect(rules.refuseCreate?.("Ada", [], by("Ada"))).toBeUndefined();
  expect(rules.refuseCreate?.("Ada", [], by("Bob"))).toEqual(refusal("profile.of_another"));
  expect(refuse("Ada", "Ada", set("Ada"))).toBeUndefined();
  expect(refuse("Ada", "Bob", set("Not Ada"))).toEqual(refusal("profile.of_another"));
  expect(refuse("Ada", "Ada", set(1))).toEqual(refusal("profile.field"));
  expect(refuse("Ada", "Ada", set("x"), ["name", "first"])).toEqual(refusal("profile.field"));
  expect(refuse("Ada", "Ada", set("x"), ["permission"])).toEqual(refusal("profile.field"));
  expect(rules.refuseDelete?.({ id: "Ada" }, by("Ada"))).toBeDefined();
});

test("[SPACE-1] what others are told of a space or an account is no longer, from whomever, than the interface takes", () => {
  const longest = "n".repeat(LIMITS.aboutTextChars);
  expect(refuse("Ada", "Ada", set(longest))).toBeUndefined();
  expect(refuse("Ada", "Ada", set(`${longest}n`))).toEqual(refusal("profile.field"));
  const named = (name: string) => SPACE_INDEX_RULES.refuseOp?.({ id: "space" }, ["name"], set(name), false, by("Ada"));
  expect(named(longest)).toBeUndefined();
  expect(named(`${longest}n`)).toEqual(refusal("metadata.field"));
});
