/**
 * A mirror of one model that behaves as the hub does: small files with a git digest, large ones by way of a redirect that states
 * size and SHA-256. It can be slow, break, lie and refuse.
 */
import { createHash } from "node:crypto";

interface MirrorBehaviour {
  /** Bytes of the weights after which the line breaks; once. */
  breakAfter?: number;
  /** So many bytes of the weights come at once, the others when this is over. */
  hold?: { readonly after: number; readonly until: Promise<void> };
  status?: number;
  statedSize?: number;
  statedDigest?: string;
  ignoresRange?: boolean;
  withoutQuantised?: boolean;
}

export interface ModelMirror extends AsyncDisposable {
  readonly host: string;
  behaviour: MirrorBehaviour;
  requests: { path: string; range: string | null }[];
}

const gitBlob = (bytes: Buffer) => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

export function startModelMirror(model: string, fileOf: (name: string) => Buffer | undefined): ModelMirror {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 120,
    fetch(request) {
      const { behaviour } = mirror;
      const url = new URL(request.url);
      const range = request.headers.get("range");
      mirror.requests.push({ path: url.pathname, range });
      if (behaviour.status) return new Response("no", { status: behaviour.status });
      const large = url.pathname.startsWith("/lfs/");
      const name = url.pathname.replace(large ? "/lfs/" : `/${model}/resolve/main/`, "");
      const bytes = behaviour.withoutQuantised && name.includes("quantized") ? undefined : fileOf(name);
      if (!bytes) return new Response("Entry not found", { status: 404 });
      const sha256 = behaviour.statedDigest ?? createHash("sha256").update(bytes).digest("hex");
      if (name.startsWith("onnx/") && !large) {
        const headers = {
          location: `/lfs/${name}`,
          "x-linked-size": String(behaviour.statedSize ?? bytes.length),
          "x-linked-etag": `"${sha256}"`,
        };
        return new Response(null, { status: 302, headers });
      }
      const from = range && !behaviour.ignoresRange ? Number(/bytes=(\d+)-/.exec(range)?.[1]) : 0;
      if (from > 0 && from >= bytes.length) return new Response(null, { status: 416 });
      const part = bytes.subarray(from);
      const headers: Record<string, string> = {
        etag: `"${large ? sha256 : gitBlob(bytes)}"`,
        "content-length": String(part.length),
        ...(from > 0 ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
      };
      return new Response(large ? bodyOf(part) : new Uint8Array(part), { status: from > 0 ? 206 : 200, headers });
    },
  });

  /** The body of a reply: whole, in two halves, or broken off. */
  function bodyOf(part: Buffer): Uint8Array<ArrayBuffer> | ReadableStream {
    const { breakAfter, hold } = mirror.behaviour;
    const first = breakAfter ?? hold?.after;
    if (first === undefined) return new Uint8Array(part);
    delete mirror.behaviour.breakAfter;
    return new ReadableStream({
      async start(controller) {
        controller.enqueue(new Uint8Array(part.subarray(0, first)));
        if (breakAfter === undefined) {
          await hold!.until;
          controller.enqueue(new Uint8Array(part.subarray(first)));
        } else await Bun.sleep(50);
        controller.close();
      },
    });
  }

  const mirror: ModelMirror = {
    host: `http://127.0.0.1:${server.port}`,
    behaviour: {},
    requests: [],
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return mirror;
}
