import { type Static, Type } from "@sinclair/typebox";
import { oneOf, strict } from "./schema.ts";

const AnyJson = Type.Unknown({ description: "Any JSON" });

/** A record of `agent_triggers` with the runtime's state of it. It is open: a record may hold more. */
export const TriggerView = Type.Object(
  {
    id: Type.String(),
    owner: Type.String({ description: "Peer id of the device that it is pinned to; empty: floating" }),
    avgDurationMs: Type.Union([Type.Number(), Type.Null()], { description: "Of the kept runs; null without any" }),
    failureRate: Type.Union([Type.Number(), Type.Null()], { description: "Of the kept runs; null without any" }),
    nextDueAt: Type.Optional(
      Type.Object({ $date: Type.String() }, { description: "When it fires next, if this device has it armed" }),
    ),
  },
  { additionalProperties: true, description: "The record, with its rollup" },
);

export const TriggerList = strict({ triggers: Type.Array(TriggerView) });

/** A record of `agent_trigger_runs`, without its trace. */
const RunView = Type.Object(
  { id: Type.String(), triggerId: Type.String(), status: Type.String() },
  { additionalProperties: true, description: "The row of a run" },
);
export const RunList = strict({ runs: Type.Array(RunView) });
export const RunWithTrace = strict({
  run: RunView,
  trace: Type.Union([Type.Array(AnyJson), Type.Null()], {
    description:
      "A line with the hashes of source and engine, one for each answered call, one for the end; null without",
  }),
});

export const TriggerPatchBody = strict({
  spec: Type.Optional(Type.Unknown({ description: "A new spec re-arms forward" })),
  enabled: Type.Optional(Type.Boolean({ description: "true from false resets the breaker" })),
});

export const TriggerRunBody = strict({
  args: Type.Optional(
    Type.Object({}, { additionalProperties: true, description: "Instead of the record's own arguments" }),
  ),
  dry: Type.Optional(Type.Boolean({ description: "Reads live; writes are recorded and not done" })),
});
export const RunStarted = strict({ runId: Type.String() });

export const NextFires = strict({ next: Type.Array(Type.Object({ $date: Type.String() })) });

export const ReplayReply = strict({
  same: Type.Boolean({ description: "The same calls led to the same end with the same fuel" }),
  difference: Type.Optional(
    strict({
      n: Type.Optional(Type.Integer({ description: "Number of the first call that differs, from 0" })),
      what: oneOf(["call", "missing call", "new call", "end"]),
      expected: Type.Optional(AnyJson),
      got: Type.Optional(AnyJson),
    }),
  ),
  status: Type.String(),
  value: Type.Optional(AnyJson),
  error: Type.Optional(Type.String()),
  fuel: Type.Union([Type.Number(), Type.Null()]),
  sourceChanged: Type.Boolean({ description: "The program's source is another one than that of the run" }),
  engineChanged: Type.Boolean({ description: "The interpreter is another one than that of the run" }),
});

export const ProgramPutBody = strict({ code: Type.String({ description: "An ES module that exports main" }) });
export const ProgramView = strict({ objectId: Type.String(), name: Type.String(), version: Type.Integer() });
export const ProgramSource = strict({ ...ProgramView.properties, code: Type.String() });
export const ProgramList = strict({ programs: Type.Array(ProgramView) });
export type ProgramView = Static<typeof ProgramView>;
