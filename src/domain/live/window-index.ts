import type { Json, JsonObject } from "../../protocol/json.ts";
import { compilePathTest } from "../../query/field-path.ts";
import type { Filter } from "../../query/filter-types.ts";
import { type Guard, type GuardKey, guardKeyOf, guardOptions } from "./filter-guard.ts";

/** The windows that guard one path, by the values they want there. */
interface PathShelf<W> {
  readonly windowsByKey: Map<GuardKey, Set<W>>;
  /** Passes every value that the matcher would look at to `#seen`. */
  readonly collect: (doc: Json) => void;
}

/**
 * Finds the windows that a record can concern without trying all of them: those whose filter demands a value at a path
 * are filed under path and value, the others are always candidates.
 */
export class WindowIndex<W> {
  readonly #shelves = new Map<string, PathShelf<W>>();
  readonly #guardsByWindow = new Map<W, readonly Guard[]>();
  readonly #unguarded = new Set<W>();
  #seen: GuardKey[] = [];

  add(window: W, filter: Filter): void {
    const guards = this.#leastCrowded(guardOptions(filter));
    if (!guards) {
      this.#unguarded.add(window);
      return;
    }
    this.#guardsByWindow.set(window, guards);
    for (const { path, keys } of guards) {
      const shelf = this.#shelves.get(path.text) ?? this.#newShelf(path);
      for (const key of keys) {
        const windows = shelf.windowsByKey.get(key);
        if (windows) windows.add(window);
        else shelf.windowsByKey.set(key, new Set([window]));
      }
    }
  }

  remove(window: W): void {
    this.#unguarded.delete(window);
    for (const { path, keys } of this.#guardsByWindow.get(window) ?? []) {
      const shelf = this.#shelves.get(path.text);
      for (const key of keys) {
        const windows = shelf?.windowsByKey.get(key);
        windows?.delete(window);
        if (windows?.size === 0) shelf?.windowsByKey.delete(key);
      }
      if (shelf?.windowsByKey.size === 0) this.#shelves.delete(path.text);
    }
    this.#guardsByWindow.delete(window);
  }

  /** Every window that could match one of the two states of a record, and few others. */
  candidates(states: {
    readonly parsedBefore: JsonObject | undefined;
    readonly parsed: JsonObject | undefined;
  }): Iterable<W> {
    if (this.#shelves.size === 0) return this.#unguarded;
    const found = new Set(this.#unguarded);
    for (const { windowsByKey, collect } of this.#shelves.values()) {
      this.#seen = [];
      if (states.parsedBefore) collect(states.parsedBefore);
      if (states.parsed) collect(states.parsed);
      for (const key of this.#seen) for (const window of windowsByKey.get(key) ?? []) found.add(window);
    }
    return found;
  }

  /** The choice under whose values the fewest windows are filed already, so that records find few that do not match. */
  #leastCrowded(options: readonly (readonly Guard[])[]): readonly Guard[] | undefined {
    let best: { guards: readonly Guard[]; crowd: number } | undefined;
    for (const guards of options) {
      let crowd = 0;
      for (const { path, keys } of guards) {
        const windowsByKey = this.#shelves.get(path.text)?.windowsByKey;
        for (const key of keys) crowd += windowsByKey?.get(key)?.size ?? 0;
      }
      if (!best || crowd < best.crowd) best = { guards, crowd };
    }
    return best?.guards;
  }

  #newShelf(path: Guard["path"]): PathShelf<W> {
    const note = (value: Json | undefined): boolean => {
      const key = guardKeyOf(value);
      if (key !== undefined) this.#seen.push(key);
      return false;
    };
    const shelf: PathShelf<W> = { windowsByKey: new Map(), collect: compilePathTest(path, note, true) };
    this.#shelves.set(path.text, shelf);
    return shelf;
  }
}
