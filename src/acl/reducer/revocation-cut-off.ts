import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { decodeChange, isDerivedRoot } from "../../change/codec/change-codec.ts";
import type { ChangeTable } from "../../store/tables/change-table.ts";
import type { CutOff } from "../record/op.ts";
import type { Revocation } from "./state.ts";

interface WrittenChange {
  author: Uint8Array;
  writer: Uint8Array;
  seq: number;
  id: Uint8Array;
}

const PAGE = 500;
const MAX_TIPS = 16;
const MAX_WRITERS = 256;
const MAX_CACHED_CHAINS = 8;

/**
 * The last changes that are here of each of an account's writers: the cut-offs of a record that takes away its right to
 * write. If the account has very many writers, those that wrote last are taken.
 */
export function createCutOffs(changes: ChangeTable): (account: Uint8Array) => CutOff[] {
  return (account) => {
    const writers = changes.writersOf(account);
    const newest = writers.flatMap((writer) => ({ writer, last: changes.newestOfWriter(writer.no) }));
    newest.sort((a, b) => (b.last?.lamport ?? 0) - (a.last?.lamport ?? 0));
    return newest.slice(0, MAX_WRITERS).flatMap(({ writer, last }) => {
      if (!last) return [];
      const forked = changes.countOfWriter(writer.no) !== last.seq;
      const tips = forked ? tipsOf(changes, writer.no) : [{ seq: last.seq, id: last.id }];
      return tips.map((tip) => ({ writer: writer.id, ...tip }));
    });
  };
}

/**
 * The ends of a writer's chain that was continued twice, longest first. A cloned or rolled-back device makes such a
 * chain.
 */
function tipsOf(changes: ChangeTable, writer: number): { seq: number; id: Uint8Array }[] {
  const tips = new Map<string, { seq: number; id: Uint8Array }>();
  for (let seq = 0; ; ) {
    const page = changes.ofWriter(writer, seq + 1, PAGE);
    for (const change of page) {
      tips.set(bytesToHex(change.id), { seq: change.seq, id: change.id });
      const prev = prevOf(change.bytes);
      if (prev) tips.delete(bytesToHex(prev));
    }
    // Both changes of one seq stay on one page, because the next page begins at the last seq again.
    const last = page.at(-1)?.seq ?? 0;
    if (page.length < PAGE) break;
    seq = last > seq + 1 ? last - 1 : last;
  }
  return [...tips.values()].sort((a, b) => b.seq - a.seq).slice(0, MAX_TIPS);
}

function prevOf(bytes: Uint8Array): Uint8Array | null {
  const change = decodeChange(bytes);
  return isDerivedRoot(change) ? null : change.header.prev;
}

/** Decides which changes of an account were accepted before its right to write was revoked. */
export function createRevocationJudge(changes: ChangeTable) {
  /** Ids along a chain up to its cut-off, 32 bytes per seq; built only where a writer's place is contested. */
  const chains = new Map<string, Uint8Array>();

  const chainTo = (tip: CutOff): Uint8Array | undefined => {
    const name = bytesToHex(tip.id);
    const known = chains.get(name);
    if (known) return known;
    const ids = new Uint8Array(32 * tip.seq);
    let id: Uint8Array | null = tip.id;
    for (let seq = tip.seq; seq > 0; seq--) {
      const change = id && changes.byId(id);
      if (!change) return undefined; // the change at the cut-off is not here yet
      ids.set(change.id, 32 * (seq - 1));
      id = prevOf(change.bytes);
    }
    if (chains.size >= MAX_CACHED_CHAINS) chains.delete(chains.keys().next().value!);
    chains.set(name, ids);
    return ids;
  };

  const isContested = (change: WrittenChange): boolean => {
    const writer = changes.writer(change.author, change.writer);
    return !!writer && changes.atSeq(writer.no, change.seq).some(({ id }) => !equalBytes(id, change.id));
  };

  const accepts = (revocation: Revocation, change: WrittenChange): boolean => {
    const tips = revocation.cutOffs.filter(({ writer, seq }) => equalBytes(writer, change.writer) && seq >= change.seq);
    if (tips.some((tip) => tip.seq === change.seq && equalBytes(tip.id, change.id))) return true;
    const longer = tips.filter((tip) => tip.seq > change.seq);
    if (longer.length === 0) return false;
    // Two changes claim one place: only the one from which a change at a cut-off descends was accepted.
    return (
      !isContested(change) ||
      longer.some((tip) => {
        const chain = chainTo(tip);
        return !chain || equalBytes(chain.subarray(32 * (change.seq - 1), 32 * change.seq), change.id);
      })
    );
  };

  return {
    /** Whether a change that names `pos` is beyond what a later revocation accepted. */
    rejects: (revocations: readonly Revocation[], change: WrittenChange, pos: number): boolean =>
      revocations.some((revocation) => revocation.pos > pos && !accepts(revocation, change)),

    /** Whether this change shows which of a forked writer's changes had been accepted. */
    decidesCutOff(revocations: readonly Revocation[], change: WrittenChange): boolean {
      if (!revocations.some((revocation) => revocation.cutOffs.some(({ id }) => equalBytes(id, change.id))))
        return false;
      const writer = changes.writer(change.author, change.writer);
      return !!writer && changes.countOfWriter(writer.no) > change.seq;
    },
  };
}
