/**
 * `_ver` of a record: a tree that mirrors the record. A leaf is the version that last wrote the whole subtree; an inner
 * node may hold `*`, the version of every sibling it does not list. `id` at the top is the creation. What `_ver` says
 * is shown to callers; the fold never reads it, since ops are replayed in order.
 */
export type VersionTree = { [key: string]: string | VersionTree };

/** Notes that `version` wrote the subtree at `segments`. Versions only grow, as the fold goes in order. */
export function claimPath(tree: VersionTree, segments: readonly string[], version: string): void {
  let node = tree;
  for (let i = 0; i < segments.length - 1; i++) {
    const segment = segments[i]!;
    const below = Object.hasOwn(node, segment) ? node[segment] : undefined;
    if (typeof below === "object") {
      node = below;
      continue;
    }
    const inherited = below ?? node["*"];
    if (inherited === version) return; // the whole subtree is this version's already
    const created: VersionTree = typeof inherited === "string" ? { "*": inherited } : {};
    node[segment] = created;
    node = created;
  }
  const last = segments[segments.length - 1]!;
  if (node["*"] !== version) node[last] = version;
  else if (Object.hasOwn(node, last)) delete node[last];
}

/** Every version that the tree names. */
export function versionsIn(tree: VersionTree, into: Set<string> = new Set()): Set<string> {
  for (const value of Object.values(tree)) {
    if (typeof value === "string") into.add(value);
    else versionsIn(value, into);
  }
  return into;
}
