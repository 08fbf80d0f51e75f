import type { KV } from "@nats-io/kv";
import { isKeyTaken } from "./nats-key-taken.ts";
import type { Delivery } from "./state.ts";

const PREFIX = "delivery.";

interface Known {
  delivery: Delivery;
  /** When it may be taken: at its time, or at the end of a node's lease. */
  freeMs: number;
  revision: number;
}
/** A delivery as it is stored; by `leasedMs` the node that works on it has to be done. */
interface Stored extends Delivery {
  readonly leasedMs?: number;
}

/**
 * Deliveries in a bucket on which several nodes work. Each node follows the bucket and keeps the due deliveries in
 * memory. To take one, a node writes its lease over the revision it knows, which only one of them can do.
 */
export async function createDueIndex(kv: KV) {
  const knownById = new Map<string, Known>();
  const keyOf = (id: string) => `${PREFIX}${id}`;

  const note = (stored: Stored, revision: number): void => {
    const known = knownById.get(stored.id);
    if (known && known.revision > revision) return;
    const { leasedMs, ...delivery } = stored;
    knownById.set(stored.id, { delivery, freeMs: leasedMs ?? delivery.dueMs, revision });
  };
  const watch = await kv.watch({ key: `${PREFIX}>` });
  const following = (async () => {
    for await (const entry of watch) {
      if (entry.operation === "PUT") note(entry.json<Stored>(), entry.revision);
      else knownById.delete(entry.key.slice(PREFIX.length));
    }
  })();

  /** Writes over the known revision; resolves to undefined when another node was first. */
  const lease = async ({ delivery, revision }: Known, leasedMs: number): Promise<Delivery | undefined> => {
    const stored: Stored = { ...delivery, leasedMs };
    try {
      note(stored, await kv.update(keyOf(delivery.id), JSON.stringify(stored), revision));
      return delivery;
    } catch (error) {
      if (isKeyTaken(error)) return undefined;
      throw error;
    }
  };

  return {
    /** Adds a delivery unless one with its id exists. */
    async add(delivery: Delivery): Promise<void> {
      try {
        note(delivery, await kv.create(keyOf(delivery.id), JSON.stringify(delivery)));
      } catch (error) {
        if (!isKeyTaken(error)) throw error;
      }
    },
    async take(nowMs: number, limit: number, leaseMs: number): Promise<Delivery[]> {
      const due = [...knownById.values()].filter(({ freeMs }) => freeMs <= nowMs);
      due.sort((a, b) => a.freeMs - b.freeMs);
      const taken = await Promise.all(due.slice(0, limit).map((known) => lease(known, nowMs + leaseMs)));
      return taken.filter((delivery) => delivery !== undefined);
    },
    async put(delivery: Delivery): Promise<void> {
      note(delivery, await kv.put(keyOf(delivery.id), JSON.stringify(delivery)));
    },
    async drop(id: string): Promise<void> {
      await kv.purge(keyOf(id));
      knownById.delete(id);
    },
    nextDueMs(): number | undefined {
      let next: number | undefined;
      for (const { freeMs } of knownById.values()) if (next === undefined || freeMs < next) next = freeMs;
      return next;
    },
    size: (): number => knownById.size,
    close(): void {
      watch.stop();
      void following;
    },
  };
}
