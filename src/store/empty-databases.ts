import { ACCOUNT_SCHEMA } from "./account-schema.ts";
import { bytesOfEmpty, type Schema } from "./database/database.ts";
import { SPACE_SCHEMA } from "./space-schema.ts";

const made = new Map<Schema, Uint8Array>();

function madeOnce(schema: Schema): Uint8Array {
  const bytes = made.get(schema) ?? bytesOfEmpty(schema);
  made.set(schema, bytes);
  return bytes;
}

/**
 * The bytes of databases with nothing in them, which are laid down instead of making a hundred tables and triggers one by one. From
 * source they are made here, each once in a process; the build replaces this module by one that contains the finished bytes.
 */
export const emptyAccount = (): Uint8Array => madeOnce(ACCOUNT_SCHEMA);
export const emptySpace = (): Uint8Array => madeOnce(SPACE_SCHEMA);
