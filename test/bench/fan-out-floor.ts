/**
 * The floor of the fan-out, in a process of its own: a bare Bun server that writes a document durably into SQLite, then
 * hands it to every open stream as it is. argv: database path. Prints its port.
 */
import { Database } from "bun:sqlite";

const db = new Database(process.argv[2]!, { create: true });
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
db.run("CREATE TABLE rows(id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID");
const put = db.query<null, [string]>("INSERT OR REPLACE INTO rows(id, doc) VALUES('one', ?)");
const streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
const encoder = new TextEncoder();

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch: async (request) => {
    if (new URL(request.url).pathname === "/write") {
      const doc = await request.text();
      put.run(doc);
      const frame = encoder.encode(`event: changes\ndata: [${doc}]\n\n`);
      setImmediate(() => {
        for (const stream of streams) stream.enqueue(frame);
      });
      return Response.json({});
    }
    return new Response(
      new ReadableStream<Uint8Array>({
        start: (controller) => {
          streams.add(controller);
          controller.enqueue(encoder.encode("event: snapshot\ndata: {}\n\n"));
        },
      }),
      { headers: { "Content-Type": "text/event-stream" } },
    );
  },
});
console.log(server.port);
