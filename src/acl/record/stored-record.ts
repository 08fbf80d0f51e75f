import { type AclRecord, readVerifiedRecord } from "./record.ts";

/** A record in its position in the log, verified when it was taken in. Its content is decoded when first asked for. */
export class StoredRecord {
  readonly id: Uint8Array;
  readonly bytes: Uint8Array;
  #record: AclRecord | undefined;

  constructor(id: Uint8Array, bytes: Uint8Array, record?: AclRecord) {
    this.id = id;
    this.bytes = bytes;
    this.#record = record;
  }

  get record(): AclRecord {
    this.#record ??= readVerifiedRecord(this.bytes);
    return this.#record;
  }
}
