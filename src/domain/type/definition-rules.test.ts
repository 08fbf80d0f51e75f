import { describe, expect, test } from "bun:test";
import type { AccountId, ObjectId, SpaceId } from "../../base/ids.ts";
import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope, DatasetRules } from "../../change/codec/dataset-rules.ts";
import { ABSENT, foldRecord, type RecordState } from "../../change/fold/record-fold.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { encodeDeclaration, versionIdOf } from "./declaration.ts";
import { type DeclarationDataset, derivedDeclarationId } from "./declaration-id.ts";
import {
  DATASET_DEF_RULES,
  DATASET_FIELD_RULES,
  PROPERTY_RULES,
  VERSION_RULES,
  versionsIn,
} from "./definition-rules.ts";

const TYPE_ID = cidFromDigest(new Uint8Array(32).fill(1)) as ObjectId;
const ENVELOPE: ChangeEnvelope = {
  version: "v",
  changeId: new Uint8Array(32),
  author: "A" as AccountId,
  timeMs: 0,
  spaceId: "s" as SpaceId,
  objectId: TYPE_ID,
};
const set = (path: string, value: Json): RecordOp => ({ type: "$set", path, value });
/** An entry that creates a record where the server names them comes without an id. */
const fold = (rules: DatasetRules, state: RecordState, change: Omit<RecordChange, "id">, id = "r") =>
  foldRecord(
    structuredClone(state),
    id,
    [{ id: rules.idRule === "auto" && state === ABSENT ? "" : id, ...change }],
    ENVELOPE,
    rules,
  );
const create = (rules: DatasetRules, fields: JsonObject) =>
  fold(rules, ABSENT, { upsert: true, ops: [set("", fields)] });

const PROPERTY = {
  name: "State",
  kind: "string",
  scope: "synced",
  format: { type: "select", options: { open: { name: "Open" } } },
};
const DEFINITION = { name: "tasks", idRule: "user", deleteBy: "anyone" };
const FIELD = { def: "d1", key: "a", kind: "string", scope: "synced", mutableBy: "any" };

const KINDS: { what: string; rules: DatasetRules; record: JsonObject; bad: JsonObject[] }[] = [
  {
    what: "a property",
    rules: PROPERTY_RULES,
    record: PROPERTY,
    bad: [
      { ...PROPERTY, name: 5 },
      { ...PROPERTY, kind: "money" },
      { ...PROPERTY, scope: "derived" },
      { ...PROPERTY, kind: "number" },
      { ...PROPERTY, format: { type: "tags" } },
      { ...PROPERTY, format: { type: "select", options: { "a.b": {} } } },
      { ...PROPERTY, xKey: "a b" },
      { ...PROPERTY, meta: { a: 1 } },
      { ...PROPERTY, items: { kind: "string" } },
      { ...PROPERTY, removed: true },
      { ...PROPERTY, "format.ui": "select" },
    ],
  },
  {
    what: "a definition",
    rules: DATASET_DEF_RULES,
    record: DEFINITION,
    bad: [
      { ...DEFINITION, name: "Tasks" },
      { ...DEFINITION, idRule: "any" },
      { ...DEFINITION, idRule: "auto", idPattern: "x" },
      { ...DEFINITION, idMaxLen: 0 },
      { ...DEFINITION, deleteBy: "nobody" },
      { ...DEFINITION, dynamic: false },
      { ...DEFINITION, search: { scope: "No Slug" } },
      { ...DEFINITION, search: { text: [] } },
      { ...DEFINITION, search: { weight: 1 } },
      { ...DEFINITION, owner: "x" },
    ],
  },
  {
    what: "a field",
    rules: DATASET_FIELD_RULES,
    record: FIELD,
    bad: [
      { ...FIELD, def: 1 },
      { ...FIELD, key: "id" },
      { ...FIELD, key: "_x" },
      { ...FIELD, key: "a.b" },
      { ...FIELD, kind: "money" },
      { ...FIELD, shape: { kind: "number" } },
      { ...FIELD, scope: "derived" },
      { ...FIELD, stamp: "creator" },
      { ...FIELD, stamp: "createTime", scope: "derived" },
      { ...FIELD, mutableBy: "owner" },
      { ...FIELD, required: false },
    ],
  },
];

for (const { what, rules, record, bad } of KINDS) {
  describe(what, () => {
    const state = create(rules, record).state;

    test("is created whole, well-formed, or not at all", () => {
      expect(state).toMatchObject({ kind: "live", doc: record });
      for (const fields of bad) expect([fields, create(rules, fields).state.kind]).toEqual([fields, "absent"]);
      for (const ops of [
        [],
        [set("name", "x")],
        [set("", record), set("name", "x")],
        [{ type: "$unset", path: "", value: record } as RecordOp],
      ])
        expect(fold(rules, ABSENT, { upsert: true, ops }).state.kind).toBe("absent");
    });

    test("[TYPE-5] may be created under the id that its key yields, and under no other", () => {
      const keyed = rules === PROPERTY_RULES ? { ...record, xKey: "state" } : record;
      const upsert = (id: string, fields: JsonObject, from: RecordState = ABSENT) =>
        foldRecord(structuredClone(from), id, [{ id, upsert: true, ops: [set("", fields)] }], ENVELOPE, rules);
      const id = derivedDeclarationId(TYPE_ID, rules.name as DeclarationDataset, keyed)!;
      const made = upsert(id, keyed).state;
      expect(made).toMatchObject({ kind: "live", doc: { id, ...keyed } });
      expect(upsert("other", keyed).state.kind).toBe("absent");
      expect(upsert(id, { ...keyed, xKey: "b", name: "b", key: "b" }).state.kind).toBe("absent");
      // Made once more elsewhere: nothing that decides how records fold is another's.
      const again = upsert(id, { ...keyed, kind: "number", idRule: "auto", mutableBy: "never" }, made).state;
      expect(again).toMatchObject({ kind: "live", doc: keyed });
    });

    test("[TYPE-2] [TYPE-8] keeps every part it was created with, whoever tries", () => {
      for (const key of Object.keys(record)) {
        if (key === "name" && rules === PROPERTY_RULES) continue; // a display leaf there
        for (const op of [set(key, "x"), { type: "$unset", path: key } as RecordOp, set("", { [key]: "x" })])
          expect([op, fold(rules, state, { ops: [op] }).drops.length]).toEqual([op, 1]);
      }
      for (const type of ["$inc", "$addToSet", "$pull"] as const)
        expect(fold(rules, state, { ops: [{ type, path: "description", value: 1 }] }).drops).toHaveLength(1);
    });

    test("is removed by a mark that stays, never deleted", () => {
      expect(fold(rules, state, { delete: true, ops: [] }).state.kind).toBe("live");
      expect(fold(rules, ABSENT, { delete: true, ops: [] }).state.kind).toBe("absent");
      const { state: removed } = fold(rules, state, { ops: [set("removed", true)] });
      expect(removed).toMatchObject({ kind: "live", doc: { removed: true } });
      for (const op of [set("removed", false), { type: "$unset", path: "removed" } as RecordOp, set("removed.x", true)])
        expect(fold(rules, removed, { ops: [op] }).drops).toHaveLength(1);
    });
  });
}

describe("display leaves", () => {
  test("[TYPE-2] of a property", () => {
    const { state } = create(PROPERTY_RULES, PROPERTY);
    const ops: RecordOp[] = [
      set("name", "Status"),
      set("description", "d"),
      set("xKey", "status"),
      set("meta.pos", "1"),
      set("format.ui", "multiselect"),
      set("format.options.open.color", "red"),
      set("format.options.done.name", "Done"),
      set("format.options.done.meta.icon", "x"),
      { type: "$unset", path: "format.options.open" },
      { type: "$unset", path: "description" },
    ];
    const { state: changed, drops } = fold(PROPERTY_RULES, state, { ops });
    expect(drops).toEqual([]);
    expect(changed).toMatchObject({
      doc: {
        name: "Status",
        xKey: "status",
        meta: { pos: "1" },
        format: { type: "select", ui: "multiselect", options: { done: { name: "Done", meta: { icon: "x" } } } },
      },
    });
  });

  test("[TYPE-8] of a definition", () => {
    const { state } = create(DATASET_DEF_RULES, DEFINITION);
    const ops = [
      set("displayName", "T"),
      set("description", "d"),
      set("search.title", "a"),
      set("search.text", ["a", "b"]),
    ];
    expect(fold(DATASET_DEF_RULES, state, { ops: [...ops, set("search.scope", "notes")] }).drops).toEqual([]);
    const bad = [set("search", {}), set("search.scope", "A B"), set("search.text", ["a", "a"]), set("displayName", 1)];
    expect(fold(DATASET_DEF_RULES, state, { ops: bad }).drops).toHaveLength(4);
  });
});

describe("a version", () => {
  const text = encodeDeclaration({
    typeId: TYPE_ID,
    defId: "d1",
    name: "tasks",
    idRule: "user",
    deleteBy: "anyone",
    fields: [],
  });
  const id = versionIdOf(text);
  const write = (recordId: string, ops: RecordOp[]) => fold(VERSION_RULES, ABSENT, { upsert: true, ops }, recordId);

  test("is the declaration that its id is the hash of, on the type that it names", () => {
    const good = write(id, [set("", { declaration: text })]);
    expect(good.state).toMatchObject({ kind: "live", doc: { declaration: text } });
    const other = encodeDeclaration({ ...JSON.parse(text), typeId: cidFromDigest(new Uint8Array(32)) });
    for (const [recordId, ops] of [
      ["x", [set("", { declaration: text })]],
      [id, [set("", { declaration: `${text} ` })]],
      [id, [set("declaration", text)]],
      [id, [set("", { declaration: text, more: 1 })]],
      [versionIdOf(other), [set("", { declaration: other })]],
      [versionIdOf("{}"), [set("", { declaration: "{}" })]],
      [id, []],
    ] as [string, RecordOp[]][])
      expect(write(recordId, ops).state.kind).toBe("absent");
  });

  test("never changes and never goes", () => {
    const { state } = write(id, [set("", { declaration: text })]);
    expect(fold(VERSION_RULES, state, { ops: [set("declaration", "x")] }, id).state).toEqual(state);
    expect(fold(VERSION_RULES, state, { upsert: true, ops: [set("", { declaration: text })] }, id).state).toEqual(
      state,
    );
    expect(fold(VERSION_RULES, state, { delete: true, ops: [] }, id).state.kind).toBe("live");
  });

  test("is learnt from a change's body, forged ones are not", () => {
    const record = { id, upsert: true, ops: [set("", { declaration: text })] };
    expect(versionsIn(TYPE_ID, [record])).toEqual([{ name: `${TYPE_ID}/${id}`, id, text }]);
    expect(versionsIn("elsewhere", [record])).toEqual([]);
    expect(
      versionsIn(TYPE_ID, [
        { ...record, id: "x" },
        { id, ops: record.ops },
      ]),
    ).toEqual([]);
  });
});
