import { type Static, Type } from "@sinclair/typebox";
import { named, strict } from "./schema.ts";

/** An op as its author wrote it; a deletion is a `$unset` of the whole record (path ""). */
const HistoryOp = named(
  "HistoryOp",
  strict({
    type: Type.String(),
    path: Type.String(),
    value: Type.Optional(Type.Unknown()),
  }),
);

export const HistoryChange = named(
  "HistoryChange",
  strict({
    version: Type.String({ description: "Change id; of a group, its newest change's" }),
    author: Type.String({ description: "Account id" }),
    timestamp: Type.Integer({ description: "Unix seconds by the author's clock: for display, never for order" }),
    dataset: Type.String(),
    traceIds: Type.Optional(
      Type.Array(Type.String(), { description: "Absent when no change of the entry carries one" }),
    ),
    touched: Type.Optional(
      Type.Array(
        strict({
          dataset: Type.String(),
          recordId: Type.String(),
          ops: Type.Optional(Type.Array(HistoryOp, { description: "Absent in a group of several changes" })),
        }),
      ),
    ),
    groupSize: Type.Integer({ description: "How many changes this entry stands for; 1 without coalesce" }),
  }),
);
export type HistoryChange = Static<typeof HistoryChange>;

export const HistoryPage = named(
  "HistoryPage",
  strict({
    changes: Type.Array(HistoryChange),
    cursor: Type.Optional(Type.String({ description: "Absent at the end" })),
  }),
);
export type HistoryPage = Static<typeof HistoryPage>;

export const HistoryView = named(
  "HistoryView",
  strict({
    version: Type.String(),
    datasets: Type.Array(
      strict({
        dataset: Type.String(),
        records: Type.Array(
          Type.Object(
            { id: Type.String() },
            { additionalProperties: true, description: "A whole record; `_deletedAt` shows in a deleted one" },
          ),
        ),
      }),
    ),
  }),
);
export type HistoryView = Static<typeof HistoryView>;

export const HistoryRecord = named(
  "HistoryRecord",
  strict({
    version: Type.String(),
    dataset: Type.String(),
    recordId: Type.String(),
    exists: Type.Boolean({ description: "Whether the record was ever made, as this version knows it" }),
    deleted: Type.Optional(Type.Boolean({ description: "It was made and deleted" })),
    record: Type.Optional(Type.Object({ id: Type.String() }, { additionalProperties: true })),
  }),
);
export type HistoryRecord = Static<typeof HistoryRecord>;

const HistoryFieldDiff = named(
  "HistoryFieldDiff",
  strict({
    path: Type.Array(Type.String()),
    before: Type.Optional(Type.Unknown({ description: "Absent: the field was not there" })),
    after: Type.Optional(Type.Unknown({ description: "Absent: the field is gone" })),
  }),
);
export type HistoryFieldDiff = Static<typeof HistoryFieldDiff>;

const HistoryRecordDiff = named(
  "HistoryRecordDiff",
  strict({
    id: Type.String(),
    kind: Type.Union([Type.Literal("added"), Type.Literal("changed"), Type.Literal("deleted")]),
    fields: Type.Optional(Type.Array(HistoryFieldDiff)),
  }),
);
export type HistoryRecordDiff = Static<typeof HistoryRecordDiff>;

export const HistoryDiff = named(
  "HistoryDiff",
  strict({
    base: Type.Optional(Type.String({ description: "Absent: the version against what it was written upon" })),
    version: Type.String(),
    datasets: Type.Array(strict({ dataset: Type.String(), records: Type.Array(HistoryRecordDiff) })),
  }),
);
export type HistoryDiff = Static<typeof HistoryDiff>;

const text = (description: string) => Type.Optional(Type.String({ description }));

export const HistoryQuery = Type.Object({
  dataset: text("Changes to this dataset"),
  recordId: text("Changes to this record; needs dataset"),
  traceId: text("Changes that carry this trace id"),
  author: text("Changes of this account"),
  limit: Type.Optional(Type.Integer({ description: "Default 50, at most 200; 0 or negative: the default" })),
  cursor: text("From the page before"),
  coalesce: Type.Optional(Type.Boolean({ description: "Consecutive linear changes of one author as one entry" })),
  coalesceWindow: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 86_400, description: "Seconds that one entry spans; absent or 0: 300" }),
  ),
});
export type HistoryQuery = Static<typeof HistoryQuery>;

export const HistoryViewQuery = Type.Object({ dataset: text("Only this dataset, even if it is empty") });

export const HistoryDiffQuery = Type.Object({
  version: Type.String(),
  base: text("Absent or empty: the effect of the version on what it was written upon"),
  dataset: text("Only this dataset"),
  recordIds: text("Only these records, comma-separated; needs dataset"),
});
export type HistoryDiffQuery = Static<typeof HistoryDiffQuery>;
