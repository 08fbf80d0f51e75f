import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { isBuiltInType } from "./built-in-types.ts";
import { type DeclarationDataset, derivedDeclarationId } from "./declaration-id.ts";
import type { Schema } from "./schema.ts";
import type { TypeEntry } from "./schema-view.ts";

export interface DefinitionChangesDeps {
  engine: ChangeEngine;
  schema: Schema;
  /** Throws space.read_only unless this account may write. */
  requireWriter(): void;
}

/** Writes to what types declare, one write a call. What a write changed is seen by the next one in its transaction. */
export function createDefinitionChanges({ engine, schema, requireWriter }: DefinitionChangesDeps) {
  const append = (
    tx: WriteTx,
    typeId: string,
    rules: DatasetRules,
    record: Pick<RecordChange, "id" | "upsert" | "ops">,
  ): string => {
    const appended = tx.append(tx.object(typeId)!, { dataset: rules.name, records: [record] }, rules);
    schema.view.expire(typeId);
    return appended.recordIds[0]!;
  };

  /** Runs a write that changes a type: by id or xKey; built-in types are fixed. */
  const change = <T>(typeName: string, run: (type: TypeEntry, tx: WriteTx) => T): Promise<T> => {
    requireWriter();
    return engine.write((tx) => {
      const type = typeOf(typeName);
      tx.scope.onRollback(() => schema.view.expire(type.id));
      return run(type, tx);
    });
  };

  return {
    change,

    /** The same, unless what it would make is there: that takes no right to write. */
    async changeUnless<T>(
      known: (type: TypeEntry) => T | undefined,
      typeName: string,
      run: (type: TypeEntry, tx: WriteTx) => T,
    ): Promise<T> {
      return known(typeOf(typeName)) ?? change(typeName, (type, tx) => known(type) ?? run(type, tx));
    },

    /**
     * Writes one record whole; answers its id. It comes from the change, or with `derived` from the record's key; where that
     * one is taken, by what was removed or has another key now, from the change all the same.
     */
    create(tx: WriteTx, typeId: string, rules: DatasetRules, fields: JsonObject, derived = false): string {
      const own = derived ? derivedDeclarationId(typeId, rules.name as DeclarationDataset, fields) : undefined;
      const isFree = own !== undefined && tx.record(tx.object(typeId)!, rules.name, own) === undefined;
      return append(tx, typeId, rules, {
        id: isFree ? own : "",
        upsert: true,
        ops: [{ type: "$set", path: "", value: fields }],
      });
    },

    /** Removes paths, then sets others, of one record. */
    patch(tx: WriteTx, typeId: string, rules: DatasetRules, id: string, patch: LeafPatch): void {
      append(tx, typeId, rules, {
        id,
        ops: [
          ...patch.unset.map((path): RecordOp => ({ type: "$unset", path })),
          ...patch.set.map(([path, value]): RecordOp => ({ type: "$set", path, value })),
        ],
      });
    },

    /** Marks a record as removed; it stays, as what was made under it does. */
    remove: (tx: WriteTx, typeId: string, rules: DatasetRules, id: string): void =>
      void append(tx, typeId, rules, { id, ops: [{ type: "$set", path: "removed", value: true }] }),
  };

  function typeOf(typeName: string): TypeEntry {
    const typeId = schema.typeId(typeName);
    if (typeId !== undefined && isBuiltInType(typeId)) throw svcError("type.registered", { typeId });
    const type = typeId === undefined ? undefined : schema.view.type(typeId);
    if (!type) throw svcError("type.not_found", { typeId: typeName });
    return type;
  }
}

/** Leaves to set, by dotted path, and paths to remove. */
export interface LeafPatch {
  set: [path: string, value: Json][];
  unset: string[];
}

/** The patch in a body. Throws request.missing_field when it is empty, request.invalid_field when it contradicts itself. */
export function readLeafPatch(body: { set?: object; unset?: string[] }): LeafPatch {
  const set = Object.entries((body.set ?? {}) as JsonObject);
  const unset = [...new Set(body.unset ?? [])];
  if (set.length + unset.length === 0)
    throw refusedAs("request.missing_field", { field: "set" }, refusal("patch.empty"));
  const both = unset.find((path) => set.some(([other]) => other === path));
  if (both !== undefined)
    throw refusedAs("request.invalid_field", { field: both }, refusal("patch.stands_twice", { path: both }), {
      reason: refusal("patch.contradicts"),
    });
  return { set, unset };
}
