import type { Json } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import type { InputReader } from "../io/input-reader.ts";
import type { FlagSpec, FlagSpecs } from "./flag-parser.ts";

type FlagValue<S extends FlagSpec> = S["kind"] extends "switch"
  ? boolean
  : S["kind"] extends "integer"
    ? number
    : S["kind"] extends "json"
      ? Json
      : S["kind"] extends "texts" | "list"
        ? string[]
        : string;

/** The values of flags, by name and typed by kind; flags not given are absent. */
export type FlagValues<F extends FlagSpecs> = { [K in keyof F]?: FlagValue<F[K]> };

/**
 * Converts the texts of the command line to values. It reads JSON flags through `reader`, so that stdin is read only
 * once.
 */
export async function readFlagValues<F extends FlagSpecs>(
  textsByFlag: ReadonlyMap<string, string[]>,
  flags: F,
  reader: InputReader,
): Promise<FlagValues<F>> {
  const values: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(flags)) {
    const texts = textsByFlag.get(name);
    if (texts) values[name] = await flagValue(name, spec, texts, reader);
    else if (spec.required) throw new UsageError(`missing flag --${name}: ${spec.summary}`);
  }
  return values as FlagValues<F>;
}

async function flagValue(name: string, spec: FlagSpec, texts: string[], reader: InputReader): Promise<unknown> {
  const text = texts[0] as string;
  switch (spec.kind) {
    case "switch":
      return text === "true";
    case "integer":
      return integerOf(`--${name}`, text);
    case "json":
      return reader.json(`--${name}`, text);
    case "texts":
      return texts;
    case "list":
      return texts.flatMap(splitList);
    case "text":
      return text;
  }
}

/** Parses a whole number that JSON can represent exactly; `label` names the place in the error. */
export function integerOf(label: string, text: string): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new UsageError(`${label} takes a whole number, not ${JSON.stringify(text)}`);
  }
  return value;
}

/** `a,b,,c` → `a`, `b`, `c`. */
export function splitList(text: string): string[] {
  return text.split(",").flatMap((entry) => entry.trim() || []);
}
