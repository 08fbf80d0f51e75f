/** Parallel writers that note in the journal what they send and what is acknowledged, until the server is gone. */

import type { Rng } from "../support/rng.ts";
import type { Client, UpsertResult, WriteResult } from "../support/server/client.ts";
import { type Collection, createObject, createSpace, openCollection, setFields } from "../support/server/fixtures.ts";
import type { Journal } from "./journal.ts";

export interface Writers {
  /** Resolves when every writer has noticed that the server is gone, or `stop` was called. */
  done: Promise<void>;
  stop(): void;
  /** Acknowledgements so far. */
  acknowledged(): number;
}

let serial = 0;

export function startWriters(client: Client, items: Collection, journal: Journal, rng: Rng): Writers {
  const collection = openCollection(client, items);
  let stopped = false;
  let acknowledged = 0;

  /** Repeats a step until a request fails, which is how the death of the server shows. A step may find nothing to do. */
  const loop = async (step: () => Promise<boolean>): Promise<void> => {
    while (!stopped) {
      try {
        if (await step()) acknowledged++;
        else await Bun.sleep(5);
      } catch (error) {
        if (/expected \d+, got \d+/.test(String(error))) journal.faults.push(String(error)); // an answer, but a wrong one
        return;
      }
    }
  };

  const writeGroup = async (): Promise<boolean> => {
    const token = `token-${serial++}`;
    const ids = Array.from({ length: rng.int(2, 12) }, (_, i) => `g-${token}-${i}`);
    const group = { ids, fate: "sent" as "sent" | "kept" };
    journal.groupsByToken.set(token, group);
    let result: WriteResult | UpsertResult["pages"][number];
    if (rng.chance(0.5)) result = await collection.modify(ids.map((id, i) => setFields(id, { s: token, n: i })));
    else {
      const upserted = await collection.upsert(ids.map((id, i) => ({ id, fields: { s: token, n: i } })));
      result = upserted.pages[0]!;
    }
    group.fate = "kept";
    journal.acknowledgeChange(result.changeId);
    return true;
  };

  const increment = (id: string) => {
    const counter = journal.countersById.get(id) ?? { acknowledged: 0, sent: 0 };
    journal.countersById.set(id, counter);
    return async (): Promise<boolean> => {
      const step = counter.sent + 1;
      counter.sent = step;
      const result = await collection.modify([
        {
          id,
          upsert: true,
          ops: [
            { type: "$inc", path: "n", value: 1 },
            { type: "$addToSet", path: "t", value: step },
          ],
        },
      ]);
      counter.acknowledged = step;
      journal.acknowledgeChange(result.changeId);
      return true;
    };
  };

  const deleteOne = async (): Promise<boolean> => {
    const kept = [...journal.groupsByToken.values()].filter((group) => group.fate === "kept");
    const id = kept.length > 0 ? rng.pick(rng.pick(kept).ids) : undefined;
    if (id === undefined || journal.deletedById.has(id)) return false;
    journal.deletedById.set(id, "sent");
    const result = await collection.deleteRecords([id]);
    journal.deletedById.set(id, "kept");
    journal.acknowledgeChange(result.changeId);
    return true;
  };

  const makeObject = async (): Promise<boolean> => {
    const name = `obj-${serial++}`;
    const entry: { id?: string; fate: "sent" | "kept" } = { fate: "sent" };
    journal.objectsByName.set(name, entry);
    const made = await createObject(client, items.spaceId, { initialProperties: { svc: { name } } });
    entry.id = made.id;
    entry.fate = "kept";
    await Bun.sleep(5);
    return true;
  };

  const makeSpace = async (): Promise<boolean> => {
    const name = `space-${serial++}`;
    const entry: { id?: string; fate: "sent" | "kept" } = { fate: "sent" };
    journal.spacesByName.set(name, entry);
    entry.id = (await createSpace(client, name)).id;
    entry.fate = "kept";
    await Bun.sleep(60); // spaces are files: a few a round are enough
    return true;
  };

  const loops = [
    loop(writeGroup),
    loop(writeGroup),
    loop(increment("counter-a")),
    loop(increment("counter-b")),
    loop(deleteOne),
    loop(makeObject),
    loop(makeSpace),
  ];
  return {
    done: Promise.all(loops).then(() => {}),
    stop: () => {
      stopped = true;
    },
    acknowledged: () => acknowledged,
  };
}
