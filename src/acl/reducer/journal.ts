/** Changes to an in-memory state that can be undone together. */
export interface Journal {
  put<K, V>(map: Map<K, V>, key: K, value: V): void;
  drop<K, V>(map: Map<K, V>, key: K): void;
  push<V>(list: V[], value: V): void;
  assign<T extends object>(target: T, fields: Partial<T>): void;
  /** Undoes all changes, newest first. Call it once. */
  undo(): void;
}

export function createJournal(): Journal {
  const undos: (() => void)[] = [];
  return {
    put(map, key, value) {
      const before = map.get(key);
      undos.push(before === undefined ? () => void map.delete(key) : () => void map.set(key, before));
      map.set(key, value);
    },
    drop(map, key) {
      if (!map.has(key)) return;
      const before = [...map]; // the order of a map's entries is part of its state
      undos.push(() => {
        map.clear();
        for (const [name, value] of before) map.set(name, value);
      });
      map.delete(key);
    },
    push(list, value) {
      undos.push(() => void list.pop());
      list.push(value);
    },
    assign(target, fields) {
      const before = { ...target };
      undos.push(() => void Object.assign(target, before));
      Object.assign(target, fields);
    },
    undo() {
      for (const undo of undos.splice(0).reverse()) undo();
    },
  };
}
