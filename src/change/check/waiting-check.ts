import { equalBytes } from "../../base/bytes.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ParkedChange } from "../../store/tables/parked-table.ts";
import { isGenuine } from "../codec/change-codec.ts";
import { changeIdOf } from "../codec/change-stub.ts";
import type { OnRepair } from "../codec/ports.ts";

/** So many of them are taken in again in a step. */
const PAGE = 8;

interface WaitingCheckDeps {
  store: Pick<SpaceStore, "parked">;
  /** Takes changes in as if they had come again; resolves when they are. */
  takeAgain(many: readonly Uint8Array[]): Promise<unknown>;
  /** Whether changes wait to be tried, since what they wait for has come. */
  isTrying(): boolean;
  /** The space is about to be closed: what was asked for last is not done any more. */
  isClosing(): boolean;
  onFailure: ((error: unknown) => void) | undefined;
  onRepair: OnRepair;
  soon(run: () => void): void;
}

const isEqual = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a === undefined || b === undefined ? a === b : equalBytes(a, b);

/** Whether both say the same of a change that waits. Whether its author has the right to it may be another matter by now. */
const isSame = (a: ParkedChange, b: ParkedChange): boolean =>
  a.waitKind === b.waitKind && isEqual(a.waitFor, b.waitFor) && isEqual(a.object, b.object);

/** Steps from the change with a number on: they answer the number to go on from; undefined when all were gone over. */
export interface WaitingCheck {
  parked(after: number): number | undefined;
  quarantined(after: number): number | undefined;
}

/**
 * Goes over changes that are not in the graph. One that waits is taken in again, which says anew what it waits for and whose it is.
 * One that is not what it was is dropped: whoever has it is asked for it again.
 */
export function createWaitingCheck({ store, onRepair, soon, ...deps }: WaitingCheckDeps): WaitingCheck {
  const { parked } = store;
  const hasId = (id: Uint8Array, bytes: Uint8Array): boolean => equalBytes(changeIdOf(bytes), id);
  const takeAgain = (many: readonly Uint8Array[], done = (): void => {}): void =>
    void deps
      .takeAgain(many)
      .then(() => {
        if (!deps.isClosing()) done();
      })
      .catch((error: unknown) => {
        if (!deps.isClosing()) deps.onFailure?.(error);
      });
  const compare = (before: ParkedChange): void => {
    const now = parked.get(before.id);
    if (!now || isSame(before, now)) return;
    onRepair("waiting.place", {
      change: cidFromDigest(before.id),
    });
  };
  const lastOf = (page: readonly { no: number }[]): number | undefined =>
    page.length < PAGE ? undefined : page.at(-1)?.no;
  return {
    parked(after) {
      const page = parked.after(after, PAGE);
      for (const { id, bytes } of page) {
        if (hasId(id, bytes)) continue;
        soon(() => {
          const now = parked.get(id);
          if (!now || hasId(id, now.bytes)) return;
          parked.drop(id);
          onRepair("waiting.bytes", {
            change: cidFromDigest(id),
          });
        });
      }
      const sound = page.filter(({ bytes }) => isGenuine(bytes));
      const isTrying = deps.isTrying();
      takeAgain(
        sound.map(({ bytes }) => bytes),
        () => {
          if (!isTrying) for (const before of sound) compare(before);
        },
      );
      return lastOf(page);
    },
    quarantined(after) {
      const page = parked.quarantinedAfter(after, PAGE);
      for (const { no, id, bytes, isSound } of page) {
        // What is no change in canonical form has the hash of its bytes for a name; what is too large is kept without them.
        const isNamed = bytes.length === 0 || hasId(id, bytes) || equalBytes(sha256(bytes), id);
        if (isSound && isNamed) continue;
        soon(() => {
          parked.dropQuarantined(no);
          onRepair("refused.bytes", {
            change: cidFromDigest(id),
          });
        });
        if (isGenuine(bytes)) takeAgain([bytes]);
      }
      return lastOf(page);
    },
  };
}
