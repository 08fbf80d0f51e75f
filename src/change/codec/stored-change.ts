import { StoredFileError } from "../../protocol/storage-fault.ts";
import { isStub } from "./change-stub.ts";

/** What opens the body of a change that is in the log. Its bytes were found canonical when it came in. */
export interface SealedParts {
  keyId: Uint8Array;
  /** Canonical header bytes: the additional data of the seal. */
  headerBytes: Uint8Array;
  sealed: Uint8Array;
}

const KEY_ID = Buffer.from("keyId");

const spoilt = (how: string): StoredFileError => new StoredFileError("damaged", `a stored change ${how}`);

/**
 * Finds these parts in the bytes of a stored change (`{b, h, s}`, RFC 8949 in the form of `dag-cbor.ts`) without decoding
 * the rest: replaying a long history does this for every change. Undefined for a stub. Throws StoredFileError for bytes that
 * are no change any more.
 */
export function sealedPartsOf(bytes: Uint8Array): SealedParts | undefined {
  if (bytes.length > 0 && isStub(bytes)) return undefined;
  let at = 0;

  /** Reads an item's head: its major type and argument. */
  const head = (): { major: number; argument: number } => {
    const initial = bytes[at++];
    if (initial === undefined) throw spoilt("is cut short");
    const info = initial & 31;
    let argument = info;
    if (info >= 24) {
      argument = 0;
      for (let left = 1 << (info - 24); left > 0; left--) argument = argument * 256 + bytes[at++]!;
    }
    return { major: initial >> 5, argument };
  };
  const take = (length: number): Uint8Array => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const skip = (): void => {
    const { major, argument } = head();
    if (major === 2 || major === 3) at += argument;
    else if (major === 6) skip();
    else if (major === 4) for (let i = 0; i < argument; i++) skip();
    else if (major === 5) for (let i = 0; i < argument * 2; i++) skip();
  };
  /** The name of an envelope's field, one letter. */
  const expectField = (name: string): void => {
    if (head().major !== 3 || bytes[at++] !== name.charCodeAt(0)) throw spoilt(`has no ${name}`);
  };

  head();
  expectField("b");
  const sealed = take(head().argument);
  expectField("h");
  const start = at;
  let keyId: Uint8Array | undefined;
  for (let fields = head().argument; fields > 0; fields--) {
    const name = take(head().argument);
    if (name.length === KEY_ID.length && KEY_ID.equals(name)) keyId = take(head().argument);
    else skip();
  }
  if (!keyId) throw spoilt("names no key");
  return { keyId, headerBytes: bytes.subarray(start, at), sealed };
}
