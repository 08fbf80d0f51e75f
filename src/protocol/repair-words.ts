/**
 * What the disk changed of a space, and what became of it. Whoever sets it right says a code and facts; words are made from them
 * for the log and for people alone. This is the one table of codes.
 */
const WORDS = {
  "change.id": "the id of a change was damaged on the disk: it was taken from its bytes again",
  "change.bytes": "a change was damaged on the disk: whoever has it is asked for it",
  "change.place": "the place of a change was damaged on the disk: it was read from its bytes again",
  "change.derived": "what is kept of a change was damaged on the disk: it was derived from the change again",
  "change.unreadable": "what a change says cannot be read any more: something it needs was damaged on the disk",
  "root.bytes": "a root was damaged on the disk: its copy took its place",
  "waiting.place": "what is kept of a change that waits was damaged on the disk: it was read from the change again",
  "waiting.bytes": "a change that waits was damaged on the disk: it was dropped, and comes again",
  "refused.bytes": "a change that was refused was damaged on the disk: it was dropped, and is judged anew",
  "acl.record": "a record of rights was damaged on the disk: it was written again",
  "record.row": "a record was damaged on the disk: it was made anew from its changes",
  "record.keys": "keys that queries search by were damaged on the disk: they were taken anew",
  "record.checkpoints": "checkpoints were damaged on the disk: they are done without",
  "object.derived": "what is kept of an object was damaged on the disk: it was derived from its changes again",
  "object.links": "links of an object were damaged on the disk: they were taken anew",
  "object.refolding": "a note of what is to be folded anew was damaged on the disk: its object was folded anew",
  "collection.name": "a collection was damaged on the disk: its rows say again which it is",
  "space.copies": "what is kept of a space was damaged on the disk: its copies took its place",
  "space.types": "values of another type were damaged on the disk: they have their types again",
  "space.rows": "rows that point nowhere, or sums, were damaged on the disk: they were set right",
  "space.indexes": "indexes of a space's database were damaged on the disk: they were made anew",
  "space.counts": "counts or keys of a space's database were damaged on the disk: they are made anew",
  "space.database": "a space's database is damaged: move it away, and what others have of the space comes back",
  "replica.kept": "what others are known to keep was damaged on the disk: they are asked again",
} as const;

export type RepairCode = keyof typeof WORDS;
export const REPAIR_CODES = Object.keys(WORDS) as readonly RepairCode[];

export type RepairFacts = Readonly<Record<string, unknown>>;

/** What was lost, where not everything came back. */
const LOST = { local_fields: "the fields that only this device had" } as const;

/** A repair in words. */
export function repairWords(code: RepairCode, facts: RepairFacts): { what: string; facts: RepairFacts } {
  const lost = LOST[facts["lost"] as keyof typeof LOST];
  return { what: WORDS[code], facts: lost === undefined ? facts : { ...facts, lost } };
}
