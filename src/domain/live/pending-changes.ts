import { encodeFrameText } from "../../protocol/sse-frames.ts";
import { itemChars, itemId, itemText, type LiveEntry, type LiveItem } from "./live-entry.ts";
import { RecordPart } from "./live-record.ts";
import type { LiveChanges } from "./live-request.ts";
import { mergeEffects } from "./merge-effects.ts";

/** An item in the entry of the write that last changed it. */
interface Entered<T extends LiveItem = LiveItem> {
  readonly entry: number;
  readonly item: T;
  /** Characters of its text. */
  readonly chars: number;
}
type Shown = Extract<LiveItem, { kind: "added" | "updated" }>;

/**
 * The changes that wait for one record. `gone` means that the reader had it and lost it; `shown` means that the record now has
 * another text, or is new to the reader. Both together mean that it left and came back.
 */
interface Fate {
  gone?: Entered;
  shown?: Entered<Shown>;
}

interface OpenEntry {
  readonly versionId: string;
  items: number;
}

/**
 * Holds changes that could not be sent yet, coalesced by record: ops of several updates are merged into the entry of the last
 * one, and a record that came and left is not mentioned. The result leads from what the reader last saw to the current state.
 */
export class PendingChanges {
  readonly #fates = new Map<string, Fate>();
  /** By ordinal, ascending. */
  readonly #entries = new Map<number, OpenEntry>();
  #nextEntry = 0;
  #chars = 0;

  /** How many entries a frame would hold now. */
  get entryCount(): number {
    return this.#entries.size;
  }

  /** About how long a frame would be now. */
  get chars(): number {
    return this.#chars;
  }

  /** Entries in their order. */
  add(entries: readonly LiveEntry[]): void {
    for (const { versionId, items } of entries) {
      const entry = this.#nextEntry++;
      this.#entries.set(entry, { versionId, items: 0 });
      for (const item of items) this.#addItem(entry, item);
      if (this.#entries.get(entry)?.items === 0) this.#entries.delete(entry);
    }
  }

  toChanges(): LiveChanges {
    const buckets = new Map([...this.#entries].map(([entry]) => [entry, { added: "", updated: "", removed: "" }]));
    const put = (entered: Entered | undefined) => {
      const bucket = entered && buckets.get(entered.entry);
      if (!bucket) return;
      const { kind } = entered.item;
      bucket[kind] += bucket[kind] === "" ? itemText(entered.item) : `,${itemText(entered.item)}`;
    };
    for (const { gone, shown } of this.#fates.values()) {
      put(gone);
      put(shown);
    }
    const texts = [...this.#entries].map(([entry, { versionId }]) => {
      const bucket = buckets.get(entry);
      const lists = (["added", "updated", "removed"] as const).flatMap((kind) =>
        bucket?.[kind] ? [`,"${kind}":[${bucket[kind]}]`] : [],
      );
      return `{"versionId":${JSON.stringify(versionId)}${lists.join("")}}`;
    });
    const json = `[${texts.join(",")}]`;
    return { json, frame: encodeFrameText("changes", json) };
  }

  #addItem(entry: number, item: LiveItem): void {
    const id = itemId(item);
    const fate = this.#fates.get(id) ?? {};
    const { gone, shown } = fate;
    if (shown) this.#lift(shown);
    delete fate.shown;
    if (item.kind !== "removed") {
      if (!shown) fate.shown = this.#enter(entry, item);
      else {
        // Shown twice: if the reader has not seen the addition yet, it stays an addition.
        const { kind, part } = shown.item;
        const effects = mergeEffects(part.effects, item.part.effects);
        fate.shown = this.#enter(entry, { kind, part: new RecordPart(id, item.part.doc, effects) });
      }
    } else if (gone) {
      // It left, perhaps came back, and left for another reason: the last reason counts.
      this.#lift(gone);
      fate.gone = this.#enter(entry, item);
    } else if (shown?.item.kind !== "added") fate.gone = this.#enter(entry, item);
    if (fate.gone || fate.shown) this.#fates.set(id, fate);
    else this.#fates.delete(id);
  }

  #enter<T extends LiveItem>(entry: number, item: T): Entered<T> {
    const chars = itemChars(item);
    this.#chars += chars;
    const open = this.#entries.get(entry);
    if (open) open.items++;
    return { entry, item, chars };
  }

  #lift({ entry, chars }: Entered): void {
    this.#chars -= chars;
    const open = this.#entries.get(entry);
    if (open && --open.items === 0) this.#entries.delete(entry);
  }
}
