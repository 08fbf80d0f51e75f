import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import { command, group } from "./command.ts";
import { PATCH_FLAGS, PROFILE_FLAGS } from "./shared-flags.ts";

const TYPES = "/v1/spaces/:spaceId/types";
const PROPERTY = `${TYPES}/:typeId/properties/:propId` as const;
const DATASET = `${TYPES}/:typeId/datasets/:defId` as const;
const DERIVED_FLAG = {
  kind: "switch",
  summary: "The id that the key yields, the same on every device; adopts it when it is there",
} as const;
const OPTION_ARG = { key: { summary: "Key of the option" } } as const;

const option = group("Options of a select property", {
  set: command({
    summary: "Add or change an option",
    examples: ["type property option set <spaceId> <typeId> <propId> doing --name Doing --color blue"],

    route: `PATCH ${PROPERTY}`,
    args: OPTION_ARG,
    flags: {
      name: { kind: "text", summary: "Name shown" },
      color: { kind: "text", summary: "Color shown" },
      pos: { kind: "text", hint: "POS", summary: "Position among the options" },
    },
    body: ({ args, flags }) => {
      const set: [string, Json][] = [];
      for (const leaf of ["name", "color", "pos"] as const) {
        const value = flags[leaf];
        if (value !== undefined) set.push([`${optionPath(args.key)}.${leaf}`, value]);
      }
      if (set.length === 0) throw new UsageError("give at least one of --name, --color and --pos");
      return { set: Object.fromEntries(set) };
    },
  }),
  delete: command({
    summary: "Remove an option; values that have it stay as they are",
    route: `PATCH ${PROPERTY}`,
    args: OPTION_ARG,
    body: ({ args }) => ({ unset: [optionPath(args.key)] }),
  }),
});

const property = group("Properties of a type", {
  list: command({ summary: "List a type's properties", route: `GET ${TYPES}/:typeId/properties` }),
  add: command({
    summary: "Add a property",
    examples: [
      "type property add <spaceId> <typeId> --name Due --kind datetime",
      "type property add <spaceId> <typeId> --name State --format-type select",
    ],

    route: `POST ${TYPES}/:typeId/properties`,
    flags: {
      name: { kind: "text", summary: "Display name", field: "name" },
      xkey: { kind: "text", hint: "KEY", summary: "Stable key, unique within the type", field: "xKey" },
      kind: {
        kind: "text",
        hint: "string|number|boolean|array|object|datetime",
        summary: "Kind of its values",
        field: "kind",
      },
      "format-type": {
        kind: "text",
        hint: "links|date|datetime|select|multiselect",
        summary: "Format of its values; the kind follows from it",
        field: "format.type",
      },
      "format-ui": { kind: "text", summary: "How a page shows it", field: "format.ui" },
      scope: {
        kind: "text",
        hint: "synced|account|local",
        summary: "Where its values live (default synced)",
        field: "scope",
      },
      meta: { kind: "json", summary: "Object of texts kept with it", field: "meta" },
      derived: DERIVED_FLAG,
    },
    file: true,
  }),
  patch: command({
    summary: "Change display leaves of a property",
    examples: ['type property patch <spaceId> <typeId> <propId> --set \'{"name":"Due date"}\' --unset description'],

    route: `PATCH ${PROPERTY}`,
    flags: PATCH_FLAGS,
    file: true,
  }),
  remove: command({ summary: "Remove a property; values stay as they are", route: `DELETE ${PROPERTY}` }),
  option,
});

const dataset = group("Datasets that a type declares", {
  list: command({ summary: "List a type's datasets", route: `GET ${TYPES}/:typeId/datasets` }),
  add: command({
    summary: "Declare a dataset",
    examples: [
      'type dataset add <spaceId> <typeId> --draft \'{"name":"tasks","idRule":"user","fields":[{"key":"title","kind":"string","mutableBy":"any"}]}\'',
    ],

    route: `POST ${TYPES}/:typeId/datasets`,
    flags: { draft: { kind: "json", summary: "Its definition: {name, fields, idRule?, deleteBy?, search?, …}" } },
    file: true,
    body: ({ flags }) => objectOf("--draft", flags.draft, flags.file),
  }),
  patch: command({
    summary: "Change display leaves of a dataset",
    examples: ['type dataset patch <spaceId> <typeId> <defId> --set \'{"displayName":"Tasks"}\''],

    route: `PATCH ${DATASET}`,
    flags: PATCH_FLAGS,
    file: true,
  }),
  remove: command({ summary: "Remove a declaration; its records stay, unwritable", route: `DELETE ${DATASET}` }),
  field: group("Fields of a dataset", {
    add: command({
      summary: "Add a field",
      examples: [
        'type dataset field add <spaceId> <typeId> <defId> --field \'{"key":"due","kind":"datetime","mutableBy":"any"}\'',
      ],

      route: `POST ${DATASET}/fields`,
      flags: { field: { kind: "json", summary: "Its definition: {key, kind?, scope?, mutableBy?, …}" } },
      file: true,
      body: ({ flags }) => objectOf("--field", flags.field, flags.file),
    }),
    remove: command({ summary: "Remove a field", route: `DELETE ${DATASET}/fields/:fieldId` }),
  }),
});

export const type = group("Types, their properties and datasets", {
  create: command({
    summary: "Create a type",
    examples: ["type create <spaceId> --xkey task --name Task"],

    route: `POST ${TYPES}`,
    flags: {
      xkey: { kind: "text", hint: "KEY", summary: "Stable key, unique within the space", field: "xKey" },
      derived: DERIVED_FLAG,
      ...PROFILE_FLAGS,
    },
    file: true,
  }),
  list: command({ summary: "List the types of a space", route: `GET ${TYPES}` }),
  property,
  dataset,
});

/** The path of an option in its property. A dot in the key would lead to another path. */
function optionPath(key: string): string {
  if (key === "" || key.includes("."))
    throw new UsageError(`an option's key is not empty and has no dot, unlike ${JSON.stringify(key)}`);
  return `format.options.${key}`;
}

/** A whole body given by one flag. */
function objectOf(flag: string, value: Json | undefined, file: string | undefined): JsonObject {
  if (value === undefined && file !== undefined) return {};
  if (value === undefined) throw new UsageError(`missing flag ${flag}: the definition as JSON`);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`${flag} takes a JSON object`);
  return value;
}
