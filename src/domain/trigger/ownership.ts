import type { Election } from "./port.ts";
import type { TriggerDefinition } from "./trigger-definition.ts";

/** Whether this device answers for a trigger: pinned to it, up for it to take, or another's. */
export type Lease = "own" | "unowned" | "other";

/** An owner that was pruned owns nothing any more; an owner that is away, or not heard of yet, keeps what it has. */
export function ownerOf({ owner }: Pick<TriggerDefinition, "owner">, election: Election): Lease {
  if (!election.isKnown(election.self)) return "other"; // pruned: others take over what was this device's
  if (owner === election.self) return "own";
  const floating = owner === "" || election.isPruned(owner);
  return floating && election.active() === election.self ? "unowned" : "other";
}
