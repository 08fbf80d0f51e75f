/** Builds the page from its sources, at build time, or at the first request of a server started from source. */
import { basename, join } from "node:path";

export interface UiFile {
  /** URL path: `/ui` for the page, `/ui/<name>` for the rest. */
  path: string;
  /** Content-Type. */
  type: string;
  body: string;
}

/** Where the page and everything it loads is served. */
const UI_ROOT = "/ui";

/**
 * Builds `<uiDir>/index.html` with its scripts, its styles and its shared worker. The page itself gets the path `/ui`, everything else a
 * path below it, with absolute references between them. Throws if anything it refers to is missing.
 */
export async function buildUi(uiDir: string): Promise<UiFile[]> {
  const worker = await buildEntry(join(uiDir, "stream/stream-worker.ts"), {});
  const [workerFile] = worker;
  if (!workerFile) throw new Error("ui: the worker was not built");
  return [...worker, ...(await buildEntry(join(uiDir, "index.html"), { STREAM_WORKER_URL: workerFile.path }))];
}

/** Builds one entry with everything it refers to; `texts` become constants of its code. */
async function buildEntry(entry: string, texts: Readonly<Record<string, string>>): Promise<UiFile[]> {
  const constants = Object.entries(texts).map(([name, text]) => [name, JSON.stringify(text)]);
  const result = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    minify: true,
    publicPath: `${UI_ROOT}/`,
    naming: {
      ...(entry.endsWith(".html") ? {} : { entry: "[name]-[hash].[ext]" }),
      chunk: "[name]-[hash].[ext]",
      asset: "[name]-[hash].[ext]",
    },
    define: { "process.env.NODE_ENV": '"production"', ...Object.fromEntries(constants) },
  });
  return await Promise.all(
    result.outputs.map(async (output) => {
      const name = basename(output.path);
      return {
        path: name === "index.html" ? UI_ROOT : `${UI_ROOT}/${name}`,
        type: contentType(name),
        body: await output.text(),
      };
    }),
  );
}

function contentType(name: string): string {
  if (name.endsWith(".html")) return "text/html; charset=utf-8";
  if (name.endsWith(".js")) return "text/javascript; charset=utf-8";
  if (name.endsWith(".css")) return "text/css; charset=utf-8";
  if (name.endsWith(".svg")) return "image/svg+xml";
  throw new Error(`ui: no content type is known for ${name}; add it to src/http/page/ui-build.ts`);
}
