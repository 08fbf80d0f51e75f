import { createSemaphore } from "../base/semaphore.ts";
import { inSlices } from "../base/slices.ts";
import type { AclConsequences } from "../change/codec/ports.ts";
import type { WriteScope } from "../store/commit/commit-queue.ts";
import type { SpaceKeyRing } from "./key-ring.ts";
import { type AclAhead, TAKEN_AT_ONCE } from "./log/acl-ahead.ts";
import type { AclLog, AclMerge } from "./log/acl-log.ts";
import type { AclOffer } from "./log/offered-records.ts";

interface Merged {
  result: AclMerge;
  consequences?: AclConsequences;
}

interface TakingDeps {
  acl: AclLog;
  keys: SpaceKeyRing;
  /** Runs in one transaction and notifies the listeners once it is durable. */
  changeAcl<T>(run: (scope: WriteScope) => { result: T; consequences?: AclConsequences }): Promise<T>;
  /** Runs a write that does not change the ACL. */
  write<T>(run: () => T): Promise<T>;
  merge(offer: AclOffer, scope: WriteScope): Merged;
  consequencesOf(merge: AclMerge): AclConsequences | undefined;
}

/**
 * How often records are judged ahead of the write that takes them when others come in between; after that they are judged
 * in the write.
 */
const ATTEMPTS = 3;

/**
 * Takes in the offered records in one transaction with one notification. To keep the transaction short, branches are
 * judged beforehand in slices, and a long extension of the log is judged and stored beforehand.
 */
export function createTaking({ acl, keys, changeAcl, write, merge, consequencesOf }: TakingDeps) {
  /** One at a time, because there is room for one list of records ahead of the log. */
  const inTurn = createSemaphore(1);

  const takeAll = (offers: readonly AclOffer[]): Promise<AclMerge[]> =>
    changeAcl((scope) => joined(offers.map((offer) => merge(offer, scope))));

  /** Resolves to undefined when something came in between. */
  const takeBehind = (ahead: AclAhead, offers: readonly AclOffer[]): Promise<AclMerge[] | undefined> =>
    changeAcl((scope) => {
      const entered = acl.enter(ahead, scope);
      if (!entered) return { result: undefined };
      const consequences = consequencesOf(entered);
      const rest = joined(offers.map((offer) => mergedAhead(offer, ahead) ?? merge(offer, scope)));
      return { ...rest, ...joinedConsequences([consequences, rest.consequences]) };
    });

  return (offers: readonly AclOffer[]): Promise<AclMerge[]> => {
    const records = offers.flatMap((offer) => offer.records);
    const leaves = acl.leavesLog(offers);
    if (records.length <= TAKEN_AT_ONCE && !leaves) return takeAll(offers);
    return inTurn(async () => {
      if (leaves) await acl.judgeBranches(offers);
      for (let left = ATTEMPTS; left > 0; left--) {
        const ahead = await acl.judgeAhead(records);
        if (!ahead) break;
        await inSlices(keys.lookAhead(ahead.log.state.epochs));
        if (!(await acl.storeAhead(ahead, write))) continue;
        const taken = await takeBehind(ahead, offers);
        if (taken) return taken;
      }
      return takeAll(offers);
    });
  };
}

/** Returns what became of an offer of which some records were judged ahead; undefined for any other offer. */
function mergedAhead({ records }: AclOffer, { faults }: AclAhead): Merged | undefined {
  const judged = records.filter((record) => faults.has(record));
  if (judged.length === 0) return undefined;
  const refusal = judged.map((record) => faults.get(record)).find((fault) => fault !== undefined);
  if (refusal === undefined) return { result: { kind: "extended", taken: judged.length } };
  return { result: { kind: "refused", taken: judged.length - 1, refusal } }; // no record after a refused one is taken
}

function joined(merges: readonly Merged[]): { result: AclMerge[]; consequences?: AclConsequences } {
  return { result: merges.map(({ result }) => result), ...joinedConsequences(merges.map((one) => one.consequences)) };
}

function joinedConsequences(all: readonly (AclConsequences | undefined)[]): { consequences?: AclConsequences } {
  const many = all.filter((one) => one !== undefined);
  if (many.length === 0) return {};
  const from = many.flatMap(({ repositionFrom }) => repositionFrom ?? []);
  return {
    consequences: {
      named: many.flatMap(({ named }) => named),
      revoked: many.flatMap(({ revoked }) => revoked),
      keys: many.some(({ keys }) => keys),
      ...(from.length > 0 ? { repositionFrom: Math.min(...from) } : {}),
    },
  };
}
