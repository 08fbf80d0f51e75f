/** Keeps the first k of a stream in sorted order and never holds more than k: a heap whose root is the worst item kept. */
export interface TopK<T> {
  /** Keeps `item` if it is among the first k so far. Returns the item that is dropped because of it: another one, or itself. */
  offer(item: T): T | undefined;
  /** Returns the kept items, ascending. The heap cannot be used afterwards. */
  drain(): T[];
}

/** `k` may be Infinity: everything is then kept and sorted once at the end. */
export function createTopK<T>(k: number, compare: (a: T, b: T) => number): TopK<T> {
  const heap: T[] = [];
  const worst = () => heap[0] as T;
  return {
    offer(item) {
      if (heap.length < k) {
        heap.push(item);
        // Without a bound nothing is ever dropped, so the order can wait for the end.
        if (k !== Number.POSITIVE_INFINITY) siftUp(heap, compare);
        return undefined;
      }
      if (k <= 0 || compare(item, worst()) >= 0) return item;
      const dropped = worst();
      heap[0] = item;
      siftDown(heap, compare);
      return dropped;
    },
    drain: () => heap.sort(compare),
  };
}

function siftUp<T>(heap: T[], compare: (a: T, b: T) => number): void {
  let at = heap.length - 1;
  const item = heap[at] as T;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (compare(item, heap[parent] as T) <= 0) break;
    heap[at] = heap[parent] as T;
    at = parent;
  }
  heap[at] = item;
}

function siftDown<T>(heap: T[], compare: (a: T, b: T) => number): void {
  const item = heap[0] as T;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && compare(heap[child + 1] as T, heap[child] as T) > 0) child++;
    if (compare(heap[child] as T, item) <= 0) break;
    heap[at] = heap[child] as T;
    at = child;
  }
  heap[at] = item;
}
