/** The first k of a stream in sorted order, holding never more than k: a heap whose root is the worst one kept. */
export interface TopK<T> {
  /** Whether `item` would be kept, were it offered now. */
  accepts(item: T): boolean;
  offer(item: T): void;
  /** The kept items, ascending. The heap is spent afterwards. */
  drain(): T[];
}

/** `k` may be Infinity: everything is kept and sorted once at the end. */
export function createTopK<T>(k: number, compare: (a: T, b: T) => number): TopK<T> {
  const heap: T[] = [];
  const worst = () => heap[0] as T;
  return {
    accepts: (item) => heap.length < k || (k > 0 && compare(item, worst()) < 0),
    offer(item) {
      if (k === Number.POSITIVE_INFINITY) heap.push(item);
      else if (heap.length < k) {
        heap.push(item);
        siftUp(heap, compare);
      } else if (k > 0 && compare(item, worst()) < 0) {
        heap[0] = item;
        siftDown(heap, compare);
      }
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
