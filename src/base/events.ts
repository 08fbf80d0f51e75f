/** Where others listen to what happens, by name: each name has the arguments that the map says. */
export interface Listening<M extends EventMap<M>> {
  /** Adds a listener, which must not throw. Answers how to stop. */
  on<K extends keyof M>(name: K, listener: (...args: M[K]) => void): () => void;
}

export interface Events<M extends EventMap<M>> extends Listening<M> {
  /** Calls the listeners in the order in which they were added; of those, none that was stopped meanwhile. */
  emit<K extends keyof M>(name: K, ...args: M[K]): void;
  /** Whether anybody listens. */
  isHeard(name: keyof M): boolean;
}

type EventMap<M> = Record<keyof M, readonly unknown[]>;

export function createEvents<M extends EventMap<M>>(): Events<M> {
  const listenersByName: { [K in keyof M]?: Set<(...args: M[K]) => void> } = {};
  return {
    on(name, listener) {
      const listeners = listenersByName[name] ?? new Set();
      listenersByName[name] = listeners;
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    emit(name, ...args) {
      for (const listener of listenersByName[name] ?? []) listener(...args);
    },
    isHeard: (name) => (listenersByName[name]?.size ?? 0) > 0,
  };
}
