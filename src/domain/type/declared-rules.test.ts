import { describe, expect, test } from "bun:test";
import type { AccountId, ObjectId, SpaceId } from "../../base/ids.ts";
import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope } from "../../change/codec/dataset-rules.ts";
import { ABSENT, foldRecord, type RecordState } from "../../change/fold/record-fold.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal, refusalText } from "../../protocol/refusals.ts";
import type { Declaration, DeclaredField } from "./declaration.ts";
import { compileDeclaration, compileIdPattern } from "./declared-rules.ts";
import type { Shape } from "./value-kind.ts";

const field = (key: string, shape: Shape, more: Partial<DeclaredField> = {}): DeclaredField => ({
  id: key,
  key,
  shape,
  scope: "synced",
  mutableBy: "any",
  ...more,
});
const STRING: Shape = { kind: "string" };
const ALL: DeclaredField[] = [
  field("s", STRING),
  field("n", { kind: "number" }),
  field("t", { kind: "array", items: STRING }),
  field("o", {
    kind: "object",
    properties: { s: STRING, in: { kind: "object", properties: { n: { kind: "number" } } } },
  }),
  field("d", { kind: "datetime" }),
  field("once", STRING, { mutableBy: "never" }),
  field("mine", STRING, { mutableBy: "author" }),
  field("by", STRING, { stamp: "creator", scope: "derived", mutableBy: "never" }),
  field("at", { kind: "datetime" }, { stamp: "createTime", scope: "derived", mutableBy: "never" }),
  field("on", { kind: "datetime" }, { stamp: "modifyTime", scope: "derived", mutableBy: "never" }),
  field("here", { kind: "number" }, { scope: "local" }),
];
const declared = (more: Partial<Declaration> = {}) =>
  compileDeclaration({ typeId: "t", defId: "d", name: "x", idRule: "user", deleteBy: "anyone", fields: ALL, ...more });

const WRITE_ONCE = refusal("field.write_once");
const NOT_AUTHOR = refusal("record.not_author");
const ALICE = "Alice" as AccountId;
const BOB = "Bob" as AccountId;
const envelope = (author: AccountId, timeMs = 1000): ChangeEnvelope => ({
  version: `v${timeMs}`,
  changeId: new Uint8Array(32),
  author,
  timeMs,
  spaceId: "s" as SpaceId,
  objectId: "o" as ObjectId,
});
const set = (path: string, value: Json): RecordOp => ({ type: "$set", path, value });
const fold = (
  state: RecordState,
  change: Omit<RecordChange, "id">,
  by = ALICE,
  timeMs = 1000,
  rules = declared().rules,
) => foldRecord(structuredClone(state), "r", [{ id: "r", ...change }], envelope(by, timeMs), rules);
const create = (fields: JsonObject, rules = declared().rules) =>
  fold(ABSENT, { upsert: true, ops: [set("", fields)] }, ALICE, 1000, rules);
const contentOf = (state: RecordState): JsonObject => {
  if (state.kind !== "live") throw new Error(`the record is ${state.kind}`);
  const { _ver, ...rest } = state.doc;
  return rest;
};

describe("[TYPE-3] kinds and shapes", () => {
  const start = create({ s: "a", n: 1, t: ["x"], o: { s: "a" }, d: { $date: "2026-01-31T09:30:00.000Z" } }).state;
  const REFUSED: [RecordOp, RegExp][] = [
    [set("s", 1), /s must be a string/],
    [set("s", null), /s must be a string/],
    [set("n", "1"), /n must be a number/],
    [set("t", { a: 1 }), /t must be an array/],
    [set("t", ["a", 1]), /t\[1\] must be a string/],
    [set("o", []), /o must be an object/],
    [set("o", { $date: "2026-01-31T09:30:00.000Z" }), /o must be an object/],
    [set("o", { s: 1 }), /o\.s must be a string/],
    [set("o.s", 1), /o\.s must be a string/],
    [set("o.in.n", "x"), /o\.in\.n must be a number/],
    [set("o.s.x", 1), /o\.s is no object/],
    [set("s.x", 1), /s is no object/],
    [set("d.$date", "2026-01-31T09:30:00.000Z"), /d is no object/],
    [set("d", "2026-01-31"), /d must be an instant/],
    [set("d", { $date: "yesterday" }), /d must be an instant/],
    [set("d", { $date: "2026-01-31T10:30:00+01:00" }), /d must be an instant/],
    [set("d", { $date: 1000 }), /d must be an instant/],
    [{ type: "$inc", path: "s", value: 1 }, /s is no number/],
    [{ type: "$inc", path: "t", value: 1 }, /t is no number/],
    [{ type: "$addToSet", path: "n", value: 1 }, /n is no array/],
    [{ type: "$addToSet", path: "t", value: 1 }, /an element of t must be a string/],
    [{ type: "$pull", path: "o", value: 1 }, /o is no array/],
    [set("stray", 1), /stray is no field/],
    [set("by", "Bob"), /set by the server/],
    [set("at.x", 1), /set by the server/],
    [set("here", 1), /local/],
  ];
  for (const [op, reason] of REFUSED) {
    test(`${op.type} ${op.path} ${JSON.stringify(op.value)} is dropped, alone and beside others`, () => {
      const { state, drops, effects } = fold(start, { ops: [op] });
      expect(drops).toHaveLength(1);
      expect(refusalText(drops[0]!.refusal)).toMatch(reason);
      expect(effects).toEqual([]);
      expect(state).toEqual(start);
      expect(contentOf(fold(start, { ops: [op, set("n", 2)] }).state)["n"]).toBe(2);
    });
  }

  test("what fits is kept: free keys below an object too, and keys that a shape does not name", () => {
    const { state, drops } = fold(start, {
      ops: [
        set("o.in.free", { a: [1, null] }),
        set("o.extra", 5),
        { type: "$inc", path: "o.count", value: 2 },
        { type: "$addToSet", path: "t", value: "y" },
        { type: "$pull", path: "t", value: "x" },
        { type: "$unset", path: "s" },
      ],
    });
    expect(drops).toEqual([]);
    expect(contentOf(state)).toMatchObject({
      o: { s: "a", in: { free: { a: [1, null] } }, extra: 5, count: 2 },
      t: ["y"],
    });
    expect(contentOf(state)).not.toHaveProperty("s");
  });

  test("a dynamic dataset takes undeclared keys and holds declared ones to their kind", () => {
    const { rules } = declared({ dynamic: true });
    expect(contentOf(create({ anything: [1] }, rules).state)).toMatchObject({ anything: [1] });
    const { state, drops } = create({ anything: [1], n: "x" }, rules);
    expect(drops).toHaveLength(1);
    expect(state).toEqual(ABSENT);
  });
});

describe("[TYPE-3] who may change what", () => {
  const start = create({ s: "a", once: "first", mine: "alice" }).state;

  test("a write-once field is set by the creating change only", () => {
    for (const op of [set("once", "second"), { type: "$unset", path: "once" } as RecordOp]) {
      const { drops } = fold(start, { ops: [op] });
      expect(drops).toEqual([{ part: 0, opIndex: 0, refusal: WRITE_ONCE }]);
    }
    const without = create({ s: "a" }).state;
    expect(fold(without, { ops: [set("once", "late")] }).drops).toEqual([{ part: 0, opIndex: 0, refusal: WRITE_ONCE }]);
  });

  test("an author's field is changed by whoever the creator stamp names, nobody else", () => {
    expect(fold(start, { ops: [set("mine", "x")] }, BOB).drops).toEqual([{ part: 0, opIndex: 0, refusal: NOT_AUTHOR }]);
    expect(contentOf(fold(start, { ops: [set("mine", "x")] }, ALICE).state)["mine"]).toBe("x");
  });

  test("without a creator stamp on the record nobody passes: it fails closed", () => {
    const { rules } = declared({ fields: ALL.filter((each) => each.stamp !== "creator"), deleteBy: "author" });
    const unstamped = create({ mine: "alice" }, rules).state;
    expect(fold(unstamped, { ops: [set("mine", "x")] }, ALICE, 1, rules).drops).toHaveLength(1);
    expect(fold(unstamped, { delete: true, ops: [] }, ALICE, 1, rules).state.kind).toBe("live");
    const older: RecordState = {
      kind: "live",
      doc: { id: "r", mine: "x", _ver: { id: "v", "*": "v" } },
      bytesAtMost: 0,
    };
    expect(fold(older, { ops: [set("mine", "y")] }, ALICE).drops).toHaveLength(1);
  });

  test("deleteBy author: the author alone, and never what was not created", () => {
    const { rules } = declared({ deleteBy: "author" });
    expect(fold(start, { delete: true, ops: [] }, BOB, 1, rules).drops).toEqual([
      { part: 0, opIndex: -1, refusal: NOT_AUTHOR },
    ]);
    expect(fold(start, { delete: true, ops: [] }, ALICE, 1, rules).state.kind).toBe("tombstone");
    expect(fold(ABSENT, { delete: true, ops: [] }, ALICE, 1, rules).state.kind).toBe("absent");
    expect(fold(ABSENT, { delete: true, ops: [] }).state.kind).toBe("tombstone");
  });

  test("stamps follow the change that creates and the last one that took effect", () => {
    expect(contentOf(start)).toMatchObject({
      by: "Alice",
      at: { $date: "1970-01-01T00:00:01.000Z" },
      on: { $date: "1970-01-01T00:00:01.000Z" },
    });
    const edited = fold(start, { ops: [set("s", "b")] }, BOB, 2000).state;
    expect(contentOf(edited)).toMatchObject({
      by: "Alice",
      at: { $date: "1970-01-01T00:00:01.000Z" },
      on: { $date: "1970-01-01T00:00:02.000Z" },
    });
    expect(fold(start, { ops: [set("once", "x")] }, BOB, 3000).state).toEqual(start);
  });
});

describe("[TYPE-3] creating", () => {
  const required = declared({ fields: [field("need", STRING, { required: true }), ...ALL] });

  test("a required field must come with the creating change, of its kind", () => {
    for (const fields of [{}, { s: "a" }, { need: 5 }])
      expect(create(fields, required.rules).state.kind).toBe("absent");
    expect(create({ need: "x" }, required.rules).state.kind).toBe("live");
    const byPath = fold(ABSENT, { upsert: true, ops: [set("need", "x")] }, ALICE, 1, required.rules);
    expect(byPath.state.kind).toBe("live");
    expect(
      fold(byPath.state, { ops: [{ type: "$unset", path: "need" }] }, ALICE, 1, required.rules).drops,
    ).toHaveLength(1);
  });

  test("ids that callers name match the whole pattern and the length, counted in characters", () => {
    const refuse = (id: string, more: Partial<Declaration> = {}) =>
      declared(more).rules.refuseCreate!(id, [], envelope(ALICE));
    expect(refuse("ok._:-9")).toBeUndefined();
    expect(refuse("x".repeat(128))).toBeUndefined();
    for (const id of ["", "x".repeat(129), "a/b", "é", "a b", "a\n"])
      expect([id, refuse(id)]).not.toEqual([id, undefined]);
    expect(refuse("abc", { idPattern: "[a-z]+" })).toBeUndefined();
    expect(refuse("abc1", { idPattern: "[a-z]+" })?.code).toBe("id.pattern");
    expect(refuse("\u{1F9ED}\u{1F9ED}", { idPattern: ".+", idMaxLen: 2 })).toBeUndefined();
    expect(refuse("abc", { idPattern: ".+", idMaxLen: 2 })).toEqual(refusal("id.too_long", { limitChars: 2 }));
    expect(refuse("abc", { idPattern: "(" })).toEqual(refusal("id.pattern", { pattern: "(" }));
    expect(refuse("a/b", { idRule: "auto" })).toBeUndefined();
  });

  test("patterns are RE2 of bounded size: no lookaround, no backreferences, no blow-up", () => {
    for (const source of ["(?=a)a", "(a)\\1", "(", "((a{1000}){1000})", "[z-a]"])
      expect([source, compileIdPattern(source)]).toEqual([source, undefined]);
    expect(compileIdPattern("(a+)+")!.matches("a".repeat(5000))).toBe(true);
    for (const source of ["[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[A-Za-z0-9_-]{1,128}", ".+"])
      expect([source, compileIdPattern(source)?.pattern()]).toEqual([source, source]);
    const dear = "(?i)(?:\\pL{0,31}){31}";
    expect(compileIdPattern(dear)).toBeUndefined();
    expect(compileIdPattern(dear, 16)).toBeDefined();
    const { refuseCreate } = declared({ idPattern: dear }).rules;
    expect(refuseCreate!("abc", [], envelope(ALICE))).toEqual(refusal("id.pattern", { pattern: dear }));
  });
});

describe("[TYPE-3] scopes", () => {
  const { rules, localFault } = declared();

  test("say where a field's values live", () => {
    expect(rules.scopeOf!(["here"])).toBe("local");
    expect(rules.scopeOf!(["by"])).toBe("derived");
    expect(rules.scopeOf!(["s"])).toBe("synced");
    expect(rules.scopeOf!(["stray"])).toBe("synced");
  });

  test("local fields take ops of their kind on this device, others none", () => {
    expect(localFault(set("here", 1))).toBeUndefined();
    expect(localFault({ type: "$inc", path: "here", value: 1 })).toBeUndefined();
    expect(localFault({ type: "$unset", path: "here" })).toBeUndefined();
    expect(localFault(set("here", "x"))).toEqual(refusal("value.kind", { where: "here", kind: "number" }));
    expect(localFault(set("here.x", 1))).toEqual(refusal("value.is_no", { where: "here", kind: "object" }));
    for (const path of ["s", "by", "stray"]) expect(localFault(set(path, "x"))).toEqual(refusal("field.not_local"));
  });
});
