import { Type } from "@sinclair/typebox";
import { named, strict } from "./schema.ts";

const pipelineFields = {
  pipeline: Type.Array(Type.Unknown(), {
    description:
      "Stages: $match $sort $skip $limit $count $project $addFields $set $unwind $group $facet $lookup; each an object of one key",
  }),
  groupLimit: Type.Optional(
    Type.Integer({ description: "Groups of one $group; absent or 0: 50,000; negative: no limit" }),
  ),
  accumArrayLimit: Type.Optional(
    Type.Integer({ description: "Entries of one $push or $addToSet; absent or 0: 10,000; negative: no limit" }),
  ),
  memoryLimitBytes: Type.Optional(
    Type.Integer({
      description: "Bytes that blocking stages and the result hold together; absent or 0: 256 MiB; negative: no limit",
    }),
  ),
  explain: Type.Optional(Type.Boolean({ description: "`true` answers the plan instead of running it" })),
};

/** Body of an aggregate over a dataset of one object. Unknown keys are dropped. */
export const ObjectAggregateBody = named(
  "ObjectAggregateBody",
  Type.Object({
    objectId: Type.String({ minLength: 1 }),
    dataset: Type.String({ minLength: 1 }),
    ...pipelineFields,
  }),
);

/** Body of an aggregate over all objects of a space. Unknown keys are dropped. */
export const CollectionAggregateBody = named(
  "CollectionAggregateBody",
  Type.Object({
    objectId: Type.Optional(Type.String({ description: "Absent or empty here" })),
    dataset: Type.Optional(Type.String({ description: "Absent or empty here" })),
    ...pipelineFields,
  }),
);

export const AggregateReply = named(
  "AggregateReply",
  Type.Union([
    strict({
      records: Type.Array(
        Type.Object({}, { additionalProperties: true, description: "A document as the last stage left it" }),
      ),
    }),
    strict({
      plan: Type.String({ description: "How the pipeline would run, in words; for people, not for programs" }),
    }),
  ]),
);
