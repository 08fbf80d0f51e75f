/** Where a fault is in a pipeline, and the error that reports it. */
import { refusedPart, type SvcError } from "../../protocol/errors.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import { joinPath, shorten } from "../filter/filter-faults.ts";

export interface PipelinePath {
  /** The stage's name, `$group`. */
  readonly stage: string;
  /** Dotted, from the body's root: `pipeline.2.$group.total.$sum`. */
  readonly path: string;
}

export function below(where: PipelinePath, key: string | number): PipelinePath {
  return { stage: where.stage, path: joinPath(where.path, String(key)) };
}

export function badPipeline({ stage, path }: PipelinePath, why: Refusal): SvcError {
  return refusedPart("aggregate.bad_pipeline", { stage: shorten(stage), path: shorten(path) }, why, "pipeline");
}
