import {
  type Static,
  type TLiteral,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnion,
  Type,
} from "@sinclair/typebox";

/** An object without other keys: a strict endpoint's body, or a reply. */
export function strict<P extends TProperties>(properties: P, options: { description?: string } = {}): TObject<P> {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

type Literals<T extends readonly string[]> = { -readonly [I in keyof T]: TLiteral<T[I]> };

/** Options of `oneOf`; `fault` is the code for a string that is not listed (default `request.invalid_field`). */
interface OneOfOptions {
  description?: string;
  fault?: "request.schema" | "request.invalid_field";
}

/** One of the given strings. */
export function oneOf<const T extends readonly string[]>(values: T, options: OneOfOptions = {}): TUnion<Literals<T>> {
  // TypeBox turns a union of one into a literal and would drop the options.
  const schema =
    values.length === 1
      ? Type.Literal(values[0] as string, { ...options })
      : Type.Union(
          values.map((value) => Type.Literal(value)),
          { ...options },
        );
  return schema as unknown as TUnion<Literals<T>>;
}

/** Gives a schema its name in the API's description. Two different schemas must not have one name. */
export function named<T extends TSchema>(name: string, schema: T): T {
  return { ...schema, $id: name };
}

/**
 * For values that the domain checks, with an error of its own: the description shows `shape`, and the check of the body
 * uses only `schema`.
 */
export function describedAs<T extends TSchema>(shape: TSchema, schema: T): T {
  return { ...schema, describedAs: shape };
}

/** An instant in rows and in SpaceInfo: `{"$date": "2026-01-31T09:30:00.000Z"}` (API-7). */
export const Instant = named(
  "Instant",
  strict({ $date: Type.String({ format: "date-time" }) }, { description: "An instant, UTC with milliseconds" }),
);
export type Instant = Static<typeof Instant>;
