/**
 * Preloaded into a server that runs from its sources: every function says, while a trace is taken, that its file was entered.
 * SIGUSR2 begins a trace, of which `<TRACE_FILE>.begun` is the sign, and ends it: then the files go to `TRACE_FILE`, in the
 * order in which they were first entered.
 */
import { renameSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import ts from "typescript5";

const ROOT = `${import.meta.dir}/../..`;
let entered: Set<string> | undefined;

Object.assign(globalThis, { __enter: (file: string): void => void entered?.add(file) });

process.on("SIGUSR2", () => {
  const path = process.env["TRACE_FILE"]!;
  if (!entered) {
    writeFileSync(`${path}.begun`, "");
    entered = new Set();
    return;
  }
  const files = [...entered];
  entered = undefined;
  writeFileSync(`${path}.part`, JSON.stringify(files));
  renameSync(`${path}.part`, path);
});

Bun.plugin({
  name: "trace",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*(?<!\.d)\.ts$/ }, async ({ path }) => ({
      contents: withEntries(relative(ROOT, path), await Bun.file(path).text()),
      loader: "ts",
    }));
  },
});

/** The source with a call at the beginning of every function. */
function withEntries(file: string, source: string): string {
  const call = `globalThis.__enter(${JSON.stringify(file)})`;
  const inserts: { at: number; text: string }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && "body" in node && node.body) {
      const body = node.body as ts.Block | ts.Expression;
      if (ts.isBlock(body)) inserts.push({ at: body.getStart() + 1, text: `${call};` });
      else inserts.push({ at: body.getStart(), text: `(${call}, ` }, { at: body.getEnd(), text: ")" });
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true));
  // What is inserted at one place keeps its order: an outer end comes behind an inner one.
  return inserts
    .map((insert, order) => ({ ...insert, order }))
    .sort((a, b) => b.at - a.at || b.order - a.order)
    .reduce((text, { at, text: inserted }) => text.slice(0, at) + inserted + text.slice(at), source);
}
