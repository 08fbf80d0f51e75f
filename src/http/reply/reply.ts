import type { PackedRecords } from "../../protocol/packed-records.ts";

/** A value sent with a status other than the route's first success status. */
export class Reply<T = unknown> {
  readonly status: number;
  readonly value: T;

  constructor(status: number, value: T) {
    this.status = status;
    this.value = value;
  }
}

/** A body that is JSON text already: the store's text is sent unchanged. */
export class JsonText {
  readonly text: string;
  readonly status: number | undefined;

  constructor(text: string, status?: number) {
    this.text = text;
    this.status = status;
  }
}

/** A reply of records as they are stored, `{records, …}`: each is JSON text already, and so is what follows the list. */
export class JsonRecords {
  readonly records: readonly string[] | PackedRecords;
  /** Further fields, each after a comma. */
  readonly tail: string;

  constructor(records: readonly string[] | PackedRecords, tail: string) {
    this.records = records;
    this.tail = tail;
  }
}

export const reply = <T>(status: number, value: T): Reply<T> => new Reply(status, value);
export const jsonText = (text: string, status?: number): JsonText => new JsonText(text, status);

export const JSON_CONTENT_TYPE = "application/json; charset=utf-8";

export function jsonResponse(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(text, { status, headers: { "content-type": JSON_CONTENT_TYPE, ...headers } });
}
