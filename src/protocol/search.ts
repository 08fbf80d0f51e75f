import { type Static, Type } from "@sinclair/typebox";
import { oneOf, strict } from "./schema.ts";

export const SEARCH_MODES = ["hybrid", "fts", "vector"] as const;
export type SearchMode = (typeof SEARCH_MODES)[number];

/** Longer queries are refused. */
const MAX_QUERY_CHARS = 10_000;
const MAX_HITS = 100;
export const DEFAULT_HITS = 10;
export const DEFAULT_DATA_CHARS = 512;
const MAX_TERMS = 64;
const MAX_TERM_CHARS = 1_000;
const MAX_SCOPES = 64;

const Terms = (description: string) =>
  Type.Optional(Type.Array(Type.String({ maxLength: MAX_TERM_CHARS }), { maxItems: MAX_TERMS, description }));

export const SearchBody = strict({
  query: Type.String({
    maxLength: MAX_QUERY_CHARS,
    description: 'Words are ORed, "a phrase" stands together, prefix* is a beginning. Nothing else is an operator',
  }),
  scopes: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MAX_SCOPES,
      description: "Where to look: basic, chat, props and those that types declare; absent or empty: everywhere",
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_HITS, description: `Default ${DEFAULT_HITS}` })),
  mode: Type.Optional(Type.String({ description: "hybrid (default), fts or vector" })),
  require: Terms("Terms that every hit has, in every mode"),
  exclude: Terms("Terms that no hit has, in every mode"),
  maxData: Type.Optional(
    Type.Integer({
      minimum: -1,
      description: `Code points of text a hit shows; -1 shows a whole chunk. Default ${DEFAULT_DATA_CHARS}`,
    }),
  ),
  objectId: Type.Optional(Type.String({ description: "Only hits of this object" })),
  dataset: Type.Optional(Type.String({ description: "Only hits of this dataset" })),
});
export type SearchBody = Static<typeof SearchBody>;

export const SearchHit = strict({
  scope: Type.String(),
  objectId: Type.String(),
  dataset: Type.String({ description: "`prop` for an object's name, description and properties" }),
  recordId: Type.String({ description: "A record's id; `win_<first block>` for a document's window; a propId" }),
  chunk: Type.Optional(Type.Integer({ description: "Number of the chunk of a long text; absent: the first" })),
  data: Type.String({ description: "Text of the chunk, around what was found" }),
  dataOffset: Type.Optional(Type.Integer({ description: "Code points of the chunk before `data`; absent: none" })),
  dataTotal: Type.Integer({ description: "Code points of the chunk" }),
  score: Type.Number({ minimum: 0, maximum: 1 }),
  foundBy: Type.Array(oneOf(["fts", "vector"]), { description: "The lists that the hit stood in" }),
  highlights: Type.Array(Type.Array(Type.Integer(), { minItems: 2, maxItems: 2 }), {
    description: "What of `data` meets the query: [start, end) in code points",
  }),
});
export type SearchHit = Static<typeof SearchHit>;

export const SearchReply = strict({
  hits: Type.Array(SearchHit, { description: "Best first" }),
  mode: oneOf(SEARCH_MODES, { description: "The mode that ran" }),
  vectorStatus: oneOf(["used", "unavailable", "disabled", "skipped"], {
    description:
      "`unavailable`: the embedder is down or its model is being fetched; `disabled`: there is none; `skipped`: mode fts",
  }),
  incomplete: Type.Optional(Type.Literal(true, { description: "Some content is not indexed yet" })),
});
export type SearchReply = Static<typeof SearchReply>;
