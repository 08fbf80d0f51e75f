/** Work that is done a while after it was last asked for. */
export function createDelays<K>(delayMs: number, act: (name: K) => void) {
  const timers = new Map<K, ReturnType<typeof setTimeout>>();
  return {
    set(name: K): void {
      clearTimeout(timers.get(name));
      const due = () => {
        timers.delete(name);
        act(name);
      };
      timers.set(name, setTimeout(due, delayMs));
    },
    clear(): void {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
