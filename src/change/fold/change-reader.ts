import { StoredFileError } from "../../protocol/storage-fault.ts";
import type { ChangeTable, StoredChange } from "../../store/tables/change-table.ts";
import type { BodyOpener } from "../codec/body-opener.ts";
import { decodeChange, isDerivedRoot } from "../codec/change-codec.ts";
import type { RulesRegistry } from "../codec/ports.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import type { FoldInput, ReplayInput } from "./change-parts.ts";

const MAX_CACHED_WRITERS = 10_000;

/** The body of a change, and how long its text is. */
type OpenedBody = Extract<ReturnType<BodyOpener["openStored"]>, { body: unknown }>;

/** A change that was folded no longer opens. */
export class UnreadableChangeError extends StoredFileError {
  constructor() {
    super("damaged", "a stored change no longer opens");
  }
}

/** Reads changes that are in the log back into what the fold takes. */
export type ChangeReader = ReturnType<typeof createChangeReader>;

export function createChangeReader(deps: { changes: ChangeTable; opener: BodyOpener; registry: RulesRegistry }) {
  const { changes, opener, registry } = deps;
  /** Public keys of authors by the numbers of their writers. */
  const authors = new Map<number, Uint8Array>();

  const authorOf = (writer: number): Uint8Array => {
    let author = authors.get(writer);
    if (!author) {
      author = changes.writerByNo(writer).author;
      if (authors.size >= MAX_CACHED_WRITERS) authors.clear();
      authors.set(writer, author);
    }
    return author;
  };

  const openedOf = (stored: StoredChange, object: ObjectEntry): OpenedBody | undefined => {
    try {
      const opened = opener.openStored(stored.bytes, object.idText);
      return "body" in opened ? opened : undefined;
    } catch (error) {
      if (error instanceof RangeError) return undefined; // bytes that are no change
      throw error;
    }
  };

  /** For folding records anew. The body opened before, else the change would not be in the log. */
  const replayOf = (stored: StoredChange, object: ObjectEntry): ReplayInput & { readonly openedBytes: number } => {
    const opened = openedOf(stored, object);
    if (!opened) throw new UnreadableChangeError();
    const { body, openedBytes } = opened;
    const answer = registry.rulesFor(body.dataset, body.definition);
    if (!("rules" in answer)) throw new StoredFileError("damaged", `the definition of dataset ${body.dataset} is gone`);
    return { change: stored, author: authorOf(stored.writer), object, body, rules: answer.rules, openedBytes };
  };

  return {
    replayOf,
    /** What the projection folds of a stored change, with its position in the graph. */
    inputOf(stored: StoredChange, object: ObjectEntry): FoldInput {
      const change = decodeChange(stored.bytes, stored.id);
      if (isDerivedRoot(change)) throw new Error("a derived root has no body");
      const parents = change.header.parents.flatMap((parent) => changes.noOf(parent) ?? []);
      return { ...replayOf(stored, object), parents };
    },
    /** After a failed batch: numbers of writers minted in it mean nothing any more. */
    forgetWriters: () => authors.clear(),
  };
}
