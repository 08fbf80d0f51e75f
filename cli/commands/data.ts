import { UsageError } from "../io/exit.ts";
import type { FlagSpecs } from "../parse/flag-parser.ts";
import { command } from "./command.ts";
import { LIVE_QUERY, SUBSCRIBE_FLAGS } from "./shared-flags.ts";

/** A dataset of one object, or the collection of a space's objects with their properties. */
const SOURCE_FLAGS = {
  dataset: { kind: "text", hint: "NAME", summary: "Dataset of the object", field: "dataset" },
  properties: { kind: "switch", summary: "The collection of the space's objects instead of a dataset" },
} as const satisfies FlagSpecs;

const SOURCE_ARGS = {
  objectId: {
    summary: "Id of the object whose dataset it is; none with --properties",
    optional: true,
    field: "objectId",
  },
} as const;

interface SourceInput {
  args: { objectId: string | undefined };
  flags: { dataset?: string; properties?: boolean; file?: string };
}

export const querySubscribe = command({
  summary: "Watch records: first those that match, then every change to them",
  examples: [
    "query-subscribe <spaceId> <objectId> --dataset tasks --filter '{\"done\":false}' --sort -due --limit 20",
    'query-subscribe <spaceId> --properties --filter \'{"svc.types":"chat"}\'',
  ],

  route: "POST /v1/spaces/:spaceId/query/subscribe",
  args: SOURCE_ARGS,
  flags: { ...SOURCE_FLAGS, ...SUBSCRIBE_FLAGS },
  other: { route: "POST /v1/spaces/:spaceId/objects/query/subscribe", when: isOfObjects },
  ...LIVE_QUERY,
});

export const aggregate = command({
  summary: "Run an aggregation pipeline",
  examples: [
    'aggregate <spaceId> <objectId> --dataset tasks --pipeline \'[{"$match":{"done":false}},{"$count":"open"}]\'',
    "aggregate <spaceId> --properties --pipeline @pipeline.json --explain",
  ],

  route: "POST /v1/spaces/:spaceId/aggregate",
  args: SOURCE_ARGS,
  flags: {
    ...SOURCE_FLAGS,
    pipeline: { kind: "json", summary: "Array of stages", field: "pipeline" },
    "group-limit": { kind: "integer", summary: "Bound on groups (default 50000, negative none)", field: "groupLimit" },
    "accum-limit": {
      kind: "integer",
      summary: "Bound on a collected array (default 10000, negative none)",
      field: "accumArrayLimit",
    },
    "memory-limit": {
      kind: "integer",
      hint: "bytes",
      summary: "Bound on memory (default 256 MiB, negative none)",
      field: "memoryLimitBytes",
    },
    explain: { kind: "switch", summary: "Show the plan instead of running it", field: "explain" },
  },
  file: true,
  other: { route: "POST /v1/spaces/:spaceId/objects/aggregate", when: isOfObjects },
  body: ({ flags }) => {
    if (flags.pipeline === undefined && flags.file === undefined)
      throw new UsageError("missing flag --pipeline: array of stages");
    return {};
  },
});

/**
 * Whether the source is the space's objects, not a dataset of one object. Refuses a command line that names neither or
 * both.
 */
function isOfObjects({ args, flags }: SourceInput): boolean {
  if (flags.properties) {
    if (args.objectId !== undefined || flags.dataset !== undefined) {
      throw new UsageError(
        "--properties is about the space's objects: leave out <objectId> and --dataset, filter on id instead",
      );
    }
    return true;
  }
  if (flags.file === undefined && (args.objectId === undefined || flags.dataset === undefined)) {
    throw new UsageError("give <objectId> and --dataset NAME, or --properties for the space's objects");
  }
  return false;
}
