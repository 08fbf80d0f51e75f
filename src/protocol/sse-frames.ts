import { Type } from "@sinclair/typebox";
import { named, oneOf, strict } from "./schema.ts";

/** How many frames a stream has dropped for a slow reader since it opened. */
export const LaggedFrame = named("LaggedFrame", strict({ total: Type.Integer() }));

/** Why a stream ended: the payload of its terminal `closed` frame (LIVE-1). */
const CLOSE_REASONS = ["server_shutdown", "sdk_closed", "overflow", "drifted"] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

export const ClosedFrame = named("ClosedFrame", strict({ reason: oneOf(CLOSE_REASONS) }));

const encoder = new TextEncoder();

/** One event of a stream as it goes over the wire. Encode once, send the bytes to every subscriber. */
export function encodeFrame(event: string, data: unknown): Uint8Array {
  return encodeFrameText(event, JSON.stringify(data));
}

/** Does the same for a payload that is JSON text already; line breaks between its tokens are allowed. */
export function encodeFrameText(event: string, json: string): Uint8Array {
  const data = json.includes("\n") || json.includes("\r") ? json.replace(/\r\n|\r|\n/g, "\ndata: ") : json;
  return encoder.encode(`event: ${event}\ndata: ${data}\n\n`);
}

export const READY_FRAME: Uint8Array = encodeFrame("ready", {});
/** A comment: it keeps an idle connection alive and reveals a reader that is gone. */
export const KEEPALIVE_FRAME: Uint8Array = encoder.encode(": keepalive\n\n");

const NEWLINE = 0x0a;
const EVENT_FIELD = "event: ".length;
const DATA_FIELD = "data: ".length;

/**
 * A frame of a subscription inside a multiplexed stream: `event: frame`, `data: {id, event, data}`. It is returned in
 * parts, to be joined, so that the payload keeps its bytes, which others may share.
 */
export function multiplexedFrame(id: string, frame: Uint8Array): Uint8Array[] {
  const eventEnd = frame.indexOf(NEWLINE);
  const event = Buffer.from(frame.buffer, frame.byteOffset + EVENT_FIELD, eventEnd - EVENT_FIELD).toString("latin1");
  const head = `event: frame\ndata: {"id":${JSON.stringify(id)},"event":"${event}","data":`;
  return [encoder.encode(head), frame.subarray(eventEnd + 1 + DATA_FIELD, -2), MULTIPLEXED_END];
}

const MULTIPLEXED_END: Uint8Array = encoder.encode("}\n\n");
