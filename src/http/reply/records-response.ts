import { PIECE_CHARS, pieceFrom } from "../../protocol/packed-records.ts";
import { JSON_CONTENT_TYPE, type JsonRecords, jsonResponse } from "./reply.ts";

const HEAD = '{"records":[';

/**
 * Sends a reply of records. A long one is put together and encoded a piece at a time, as its reader takes it: as one text it would
 * take its size twice more, and hold the event loop meanwhile.
 */
export function recordsResponse(status: number, reply: JsonRecords): Response {
  if (isShort(reply)) return jsonResponse(status, textOfRecords(reply));
  const parts = partsOf(reply);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = parts.next();
      if (next.done) return controller.close();
      controller.enqueue(next.value);
      // A reader that takes all at once leaves others their turn.
      await new Promise((turn) => setImmediate(turn));
    },
    cancel: () => void parts.return(),
  });
  return new Response(body, { status, headers: { "content-type": JSON_CONTENT_TYPE } });
}

/** A whole reply as one text. */
export function textOfRecords(reply: JsonRecords): string {
  const { records, tail } = reply;
  if ("pieces" in records) return Buffer.concat([...partsOf(reply)]).toString();
  return `${HEAD}${records.join(",")}]${tail}}`;
}

function isShort({ records }: JsonRecords): boolean {
  if ("pieces" in records) return records.pieces.length < 2;
  let chars = 0;
  for (const record of records) {
    chars += record.length;
    if (chars > PIECE_CHARS) return false;
  }
  return true;
}

function* partsOf({ records, tail }: JsonRecords): Generator<Uint8Array, void> {
  const encoder = new TextEncoder();
  yield encoder.encode(HEAD);
  if ("pieces" in records) yield* records.pieces;
  else
    for (let at = 0; at < records.length; ) {
      const { text, end } = pieceFrom(records, at);
      at = end;
      yield encoder.encode(text);
    }
  yield encoder.encode(`]${tail}}`);
}
