/** What is wrong with bytes that should be one value in its only encoding, or one envelope. */
export type Malformation =
  | "bytes"
  | "truncated"
  | "trailing_bytes"
  | "not_canonical"
  | "integer_too_large"
  | "indefinite_length"
  | "too_deep"
  | "too_many_values"
  | "simple_value"
  | "map_key"
  | "tag"
  | "link"
  | "not_utf8"
  | "no_header"
  | "other_fields"
  | "body_and_hash"
  | "body_not_bytes"
  | "hash_length"
  | "signature_length";

/** Bytes do not decode. */
export class MalformedError extends RangeError {
  readonly fault: Malformation;

  constructor(fault: Malformation, options?: ErrorOptions) {
    super(`malformed: ${fault}`, options);
    this.fault = fault;
  }
}
