/** Where others listen to what happens, by name: each name has the arguments that the map says. */
export interface Listening<M extends EventMap<M>> {
  /** Adds a listener, which must not throw. Answers how to stop. */
  on<K extends keyof M>(name: K, listener: (...args: M[K]) => void): () => void;
}

export interface Events<M extends EventMap<M>> extends Listening<M> {
  /** Calls the listeners in the order in which they were added; of those, none that was stopped meanwhile. */
  emit<K extends keyof M>(name: K, ...args: M[K]): void;
  /** From now on, what happens by a name there happens by that name here too, with `first` before its arguments. */
  relay<K extends keyof M>(name: K, from: RelayedFrom<K, Rest<M[K]>>, first: M[K][0]): void;
  /** Whether anybody listens. */
  isHeard(name: keyof M): boolean;
}

type Rest<A extends readonly unknown[]> = A extends readonly [unknown, ...infer R] ? R : never;
interface RelayedFrom<K, A extends readonly unknown[]> {
  on(name: K, listener: (...args: A) => void): unknown;
}

type EventMap<M> = Record<keyof M, readonly unknown[]>;

export function createEvents<M extends EventMap<M>>(): Events<M> {
  const listenersByName: { [K in keyof M]?: Set<(...args: M[K]) => void> } = {};
  const emit = <K extends keyof M>(name: K, ...args: M[K]): void => {
    for (const listener of listenersByName[name] ?? []) listener(...args);
  };
  return {
    on(name, listener) {
      const listeners = listenersByName[name] ?? new Set();
      listenersByName[name] = listeners;
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    emit,
    relay: <K extends keyof M>(name: K, from: RelayedFrom<K, Rest<M[K]>>, first: M[K][0]): void =>
      void from.on(name, (...rest) => emit(name, ...([first, ...rest] as unknown as M[K]))),
    isHeard: (name) => (listenersByName[name]?.size ?? 0) > 0,
  };
}
