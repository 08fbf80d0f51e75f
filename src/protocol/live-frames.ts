import { Type } from "@sinclair/typebox";
import { AnyRecord, QueryReply } from "./record.ts";
import { oneOf, strict } from "./schema.ts";

const ShownRecord = strict({
  id: Type.String(),
  doc: AnyRecord,
  ops: Type.Optional(
    Type.Array(
      strict({
        type: oneOf(["$set", "$unset"]),
        path: Type.Array(Type.String(), { description: "Empty: the payload's keys are dotted paths" }),
        payload: Type.Optional(Type.Unknown()),
      }),
      { description: "What led to `doc`; absent where the record itself was not written" },
    ),
  ),
});

const ChangesEntry = strict({
  versionId: Type.String({ description: "Of the write, in this device's order; empty when an object was deleted" }),
  added: Type.Optional(Type.Array(ShownRecord)),
  updated: Type.Optional(Type.Array(ShownRecord)),
  removed: Type.Optional(
    Type.Array(strict({ id: Type.String(), reason: oneOf(["deleted", "filtered-out", "displaced"]) })),
  ),
});

/** The frames of every `query/subscribe` (spec § 4), for a route's `responses`. */
export const LIVE_FRAMES = { snapshot: QueryReply, changes: Type.Array(ChangesEntry) };
