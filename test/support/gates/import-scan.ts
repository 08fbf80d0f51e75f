/** Finds what a source file imports: values, types, re-exports, dynamic imports, and Worker entries. */

export interface ImportEdge {
  /** The specifier as written, or undefined where it is computed at run time. */
  specifier: string | undefined;
  /** `import type` and `export type`: gone at run time. */
  typeOnly: boolean;
}

/** `import …`/`export … from "x"` at the start of a line, where the formatter puts every one of them. */
const STATEMENT = /^(?:import|export)\s+(?<clause>type\s)?(?:[^;"'`()]*?\sfrom\s+)?"(?<specifier>[^"]+)"/gm;
const TYPE_NAMES = /^(?:import|export)\s+\{(?<names>[^}]*)\}\s+from\s+"(?<specifier>[^"]+)"/gm;
const DYNAMIC = /\b(?:import|require)\(\s*(?:["`](?<specifier>[^"`$]+)["`])?/g;
const WORKER = /\bworkerEntry\(\s*(?:"(?<specifier>[^"]+)")?/g;

/** Throws if the bundler's own scanner sees an import that this one does not. */
export function scanImports(path: string, source: string): ImportEdge[] {
  const code = withoutCommentLines(source);
  const typed = typedSpecifiers(code);
  const edges: ImportEdge[] = [
    ...Array.from(code.matchAll(STATEMENT), ({ groups }) => ({
      specifier: groups?.["specifier"],
      typeOnly: groups?.["clause"] !== undefined || typed.has(groups?.["specifier"] ?? ""),
    })),
    ...Array.from(code.matchAll(DYNAMIC), ({ groups }) => ({ specifier: groups?.["specifier"], typeOnly: false })),
    ...workerEdges(path, code),
  ];
  // The JSX runtime is imported by the compiler, not by the source.
  const seen = new Set(edges.map((edge) => edge.specifier));
  const loader = path.endsWith(".tsx") ? "tsx" : "ts";
  const missed = new Bun.Transpiler({ loader })
    .scanImports(source.replace(/^#!.*/, ""))
    .find((found) => !seen.has(found.path) && !/^p?react(\/|$)/.test(found.path) && found.kind !== "internal");
  if (missed) throw new Error(`${path}: the import of ${missed.path} is written in a way the layers gate cannot read`);
  return edges;
}

/** Specifiers of `{ type A, type B }` lists that hold nothing but types. */
function typedSpecifiers(code: string): Set<string> {
  const typed = new Set<string>();
  for (const { groups } of code.matchAll(TYPE_NAMES)) {
    const names = (groups?.["names"] ?? "").split(",").filter((name) => name.trim() !== "");
    if (names.every((name) => /^\s*type\s/.test(name))) typed.add(groups?.["specifier"] ?? "");
  }
  return typed;
}

/** `workerEntry("src/a/b-worker.ts")` names its file from the project's root; turned into a relative specifier. */
function workerEdges(path: string, code: string): ImportEdge[] {
  if (path === "src/base/worker-entry.ts") return [];
  const up = "../".repeat(path.split("/").length - 1);
  return Array.from(code.matchAll(WORKER), ({ groups }) => {
    const entry = groups?.["specifier"];
    return { specifier: entry === undefined ? undefined : `${up}${entry}`, typeOnly: false };
  });
}

function withoutCommentLines(source: string): string {
  return source
    .split("\n")
    .map((line) => (/^\s*(\/\/|\/?\*)/.test(line) ? "" : line))
    .join("\n");
}
