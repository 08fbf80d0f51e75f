import { expect, test } from "bun:test";
import type { AccountId, ObjectId, SpaceId } from "../../base/ids.ts";
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope } from "../../change/codec/dataset-rules.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { SPACES_RULES as rules } from "./tech-datasets.ts";

const envelope: ChangeEnvelope = {
  version: "1",
  changeId: new Uint8Array(32),
  author: "Ada" as AccountId,
  timeMs: 0,
  spaceId: "space" as SpaceId,
  objectId: "object" as ObjectId,
};
const set = (path: string, value: Json): RecordOp => ({ type: "$set", path, value });
const refuse = (doc: JsonObject, op: RecordOp) => rules.refuseOp?.(doc, op.path.split("."), op, false, envelope);
const stamped = (doc: JsonObject) => rules.stamps?.(doc, false, envelope);

test("[SPACE-2] the end of a space is set once and taken back by nothing, and outweighs any status", () => {
  expect(refuse({ status: "active" }, set("final", true))).toBeUndefined();
  for (const doc of [{}, { final: true }])
    for (const op of [set("final", false), set("final", null), { type: "$unset", path: "final" } as const])
      expect(refuse(doc, op)).toEqual(refusal("space_row.final"));
  expect(rules.refuseDelete?.({ final: true }, envelope)).toEqual(refusal("space_row.stays"));
  expect(stamped({ final: true, status: "active" })).toEqual([[["status"], "deleted"]]);
  expect(stamped({ final: true, status: "deleted" })).toEqual([]);
  expect(stamped({ status: "active" })).toEqual([]);
});

test("[SPACE-1] a row keeps its first type, author and derivation, and the time at which it came", () => {
  for (const [field, value] of [
    ["spaceType", "svc.space"],
    ["author", "Ada"],
    ["derived", true],
  ] as const) {
    expect(refuse({}, set(field, value))).toBeUndefined();
    expect(refuse({ [field]: value }, set(field, "another"))).toEqual(refusal("field.set_once"));
  }
  expect(refuse({}, set("createdAt", { $date: "2026-01-31T09:30:00.000Z" }))).toEqual(
    refusal("field.scope", { scope: "derived" }),
  );
  expect(rules.stamps?.({}, true, envelope)).toEqual([[["createdAt"], { $date: "1970-01-01T00:00:00.000Z" }]]);
});
