import type { Space } from "../space/space.ts";

/**
 * After so many rounds without its parent or its record of rights a change is set aside, and so is a body that is
 * missing: nobody who was asked has it. It is taken in all the same should it come.
 */
export const PATIENCE_ROUNDS = 5;

/** A round with somebody has passed. */
export async function ageWaiting({ engine }: Space): Promise<void> {
  const { parked, unopened } = engine.store;
  if (parked.usage().count === 0 && unopened.waitingCount(PATIENCE_ROUNDS) === 0) return;
  await engine.write(() => {
    parked.ageAll();
    unopened.age(PATIENCE_ROUNDS);
  });
}
