import { PATIENCE_ROUNDS } from "../replica.ts";
import type { ReplicaSource } from "./source.ts";

/** A round with somebody has passed. */
export async function ageWaiting({ engine }: Pick<ReplicaSource, "engine">): Promise<void> {
  const { parked, unopened } = engine.store;
  if (parked.usage().count === 0 && unopened.waitingCount(PATIENCE_ROUNDS) === 0) return;
  await engine.write(() => {
    parked.age(PATIENCE_ROUNDS);
    unopened.age(PATIENCE_ROUNDS);
  });
}
