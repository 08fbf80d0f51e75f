/** The floor for files: a bare Bun handler that streams a body to disk, hashes it and fsyncs. argv: path. Prints its port. */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";

const [path] = process.argv.slice(2) as [string];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  async fetch(request) {
    if (request.method === "GET") return new Response(Bun.file(path));
    const hash = createHash("sha256");
    const file = await open(path, "w");
    for await (const chunk of request.body as ReadableStream<Uint8Array>) {
      hash.update(chunk);
      await file.write(chunk);
    }
    await file.sync();
    await file.close();
    return new Response(hash.digest("hex"));
  },
});
console.log(server.port);
