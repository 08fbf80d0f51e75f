/** Where a fault is in a pipeline, and the error that reports it. */
import { type SvcError, svcError } from "../../protocol/errors.ts";
import { joinPath, shorten } from "../filter/filter-faults.ts";

export interface Place {
  /** The stage's name, `$group`. */
  readonly stage: string;
  /** Dotted, from the body's root: `pipeline.2.$group.total.$sum`. */
  readonly path: string;
}

export function below(place: Place, key: string | number): Place {
  return { stage: place.stage, path: joinPath(place.path, String(key)) };
}

export function badPipeline(place: Place, reason: string): SvcError {
  const path = shorten(place.path);
  const stage = shorten(place.stage);
  return svcError("aggregate.bad_pipeline", { stage, path, reason }, `The pipeline is not valid at ${path}: ${reason}`);
}
