import { svcError } from "../protocol/errors.ts";

const NIL = /^(?:none|null|nil|undefined|<nil>|\[object object\])$/i;

/** Refuses an object id that is another language's null, written as text (API-4). */
export function refuseNilId(field: string, value: unknown): void {
  if (typeof value === "string" && NIL.test(value)) throw svcError("object.id_required", { field, got: value });
}
