import { LIMITS } from "../../protocol/limits.ts";
import type { LiveEntry } from "./live-entry.ts";
import type { LiveChanges, LiveSink } from "./live-request.ts";
import { PendingChanges } from "./pending-changes.ts";

export interface Member {
  readonly sink: LiveSink;
  /** How many entries may wait for it. */
  readonly capacity: number;
  readonly driftBudgetPercent: number;
  /** How often the window had been full before this member saw it. */
  timesFullBefore: number;
  /** Closed or ended: it gets nothing more. */
  left: boolean;
}

/** Members that have taken everything up to the same moment, so that the same changes wait for them. */
interface Cohort {
  readonly members: Set<Member>;
  readonly pending: PendingChanges;
  changes?: LiveChanges | undefined;
}

interface Standing {
  cohort: Cohort;
  /** It asked when there was nothing, so the delay is the server's: what comes now does not count against its capacity. */
  waits: boolean;
}

/** The subscribers of one window. Changes for members that lag equally are kept, coalesced and encoded once. */
export class Audience {
  readonly #standings = new Map<Member, Standing>();
  readonly #cohorts = new Set<Cohort>();
  /** The cohort that is up to date, if there is one. */
  #current: Cohort | undefined;

  get size(): number {
    return this.#standings.size;
  }

  get members(): Iterable<Member> {
    return this.#standings.keys();
  }

  /** Adds a member that knows everything up to now. */
  join(member: Member): void {
    this.#standings.set(member, { cohort: this.#enterCurrent(member), waits: false });
  }

  leave(member: Member): void {
    const standing = this.#standings.get(member);
    if (!standing) return;
    this.#standings.delete(member);
    this.#leaveCohort(member, standing.cohort);
  }

  /**
   * Adds at least one entry to the changes that wait for every member. Returns the members that have something now and had
   * nothing before, and those whose mailbox is full.
   */
  publish(entries: readonly LiveEntry[]): { informed: readonly Member[]; overflowed: readonly Member[] } {
    const current = this.#current;
    this.#current = undefined;
    const overflowed: Member[] = [];
    for (const cohort of this.#cohorts) {
      cohort.pending.add(entries);
      cohort.changes = undefined;
      // Everything that one commit brings fits into an empty mailbox.
      if (cohort !== current) overflowed.push(...this.#fullIn(cohort));
    }
    return { informed: current ? [...current.members] : [], overflowed };
  }

  /** Returns everything that waits for a member, which is then up to date. */
  take(member: Member): LiveChanges | undefined {
    const standing = this.#standings.get(member);
    if (!standing) return undefined;
    const { cohort } = standing;
    standing.waits = cohort.pending.entryCount === 0;
    if (cohort === this.#current) return undefined;
    if (!standing.waits) cohort.changes ??= cohort.pending.toChanges();
    this.#leaveCohort(member, cohort);
    standing.cohort = this.#enterCurrent(member);
    return standing.waits ? undefined : cohort.changes;
  }

  #fullIn({ members, pending }: Cohort): Member[] {
    const tooLong = pending.chars > LIMITS.mailboxBytes && pending.entryCount > 1;
    return [...members].filter((member) => {
      const full = tooLong || pending.entryCount > member.capacity;
      return full && !this.#standings.get(member)?.waits;
    });
  }

  #enterCurrent(member: Member): Cohort {
    if (!this.#current) {
      this.#current = { members: new Set(), pending: new PendingChanges() };
      this.#cohorts.add(this.#current);
    }
    this.#current.members.add(member);
    return this.#current;
  }

  #leaveCohort(member: Member, cohort: Cohort): void {
    cohort.members.delete(member);
    if (cohort.members.size > 0) return;
    this.#cohorts.delete(cohort);
    if (cohort === this.#current) this.#current = undefined;
  }
}
