/** JSON and records as they come over the wire. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json | undefined;
}

/** A record as every read returns it. */
export interface Row extends JsonObject {
  id: string;
}
export interface Page {
  records: Row[];
  total?: number;
  hasNext?: boolean;
}
