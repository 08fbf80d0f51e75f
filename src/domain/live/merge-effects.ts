import type { Effect } from "../../change/fold/apply-op.ts";

/**
 * Beyond this many ops, only ops on exactly the same path replace one another, because looking for paths below costs too much.
 */
const PREFIX_OPS = 512;

/**
 * Returns ops with the same result as `older` followed by `newer`. A `$set` replaces what was done before at its path and below.
 * So does an `$unset` at the top; a deeper `$unset` leaves the `$set` that made the objects on its way.
 */
export function mergeEffects(older: readonly Effect[], newer: readonly Effect[]): readonly Effect[] {
  if (older.length === 0) return newer;
  if (newer.length === 0) return older;
  const byPath = new Map<string, Effect>();
  const lookBelow = older.length + newer.length <= PREFIX_OPS;
  let roots = 0;
  for (const effect of [...older, ...newer]) {
    // A `$set` at the root sets the paths in its payload; it replaces nothing else.
    if (effect.path.length === 0) {
      byPath.set(`root ${roots++}`, effect);
      continue;
    }
    const key = JSON.stringify(effect.path).slice(0, -1);
    const unset = `${key} unset`;
    byPath.delete(unset);
    if (effect.type === "$unset" && effect.path.length > 1) {
      byPath.set(unset, effect);
      continue;
    }
    if (lookBelow) for (const other of byPath.keys()) if (other.startsWith(`${key},`)) byPath.delete(other);
    byPath.delete(key);
    byPath.set(key, effect);
  }
  return [...byPath.values()];
}
