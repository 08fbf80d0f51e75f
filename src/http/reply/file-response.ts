import type { Log } from "../../base/log.ts";
import { svcError } from "../../protocol/errors.ts";
import { parseRange } from "./byte-range.ts";
import { errorResponse } from "./error-response.ts";
import { fileHeaders, namesTag } from "./file-headers.ts";

/** A file whose bytes can be read. */
export interface ReadableFile {
  readonly info: { readonly size: number; readonly mime?: string; readonly name?: string };
  readonly tag: string;
  read(start: number, end: number): Promise<Blob | ReadableStream<Uint8Array> | Uint8Array>;
}

/** Answers a request for a file's content: checks conditions first, then the range (RFC 9110 § 13.2.2). */
export async function fileResponse(request: Request, file: ReadableFile, log: Log): Promise<Response> {
  const { size } = file.info;
  const headers = fileHeaders({ ...file.info, tag: file.tag });
  if (namesTag(request.headers.get("if-none-match"), file.tag, true))
    return new Response(null, { status: 304, headers });
  const ifRange = request.headers.get("if-range");
  const wantsRange = ifRange === null || namesTag(ifRange, file.tag, false);
  const range = wantsRange ? parseRange(request.headers.get("range"), size) : undefined;
  if (range === "unsatisfiable") {
    const refusal = errorResponse(svcError("file.range_not_satisfiable", { size }), log);
    refusal.headers.set("content-range", `bytes */${size}`);
    return refusal;
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  headers.set("content-length", String(end - start + 1));
  if (range) headers.set("content-range", `bytes ${start}-${end}/${size}`);
  const body = size === 0 ? new Uint8Array(0) : await file.read(start, end);
  return new Response(body as BodyInit, { status: range ? 206 : 200, headers });
}
