import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { namedBy, setsText } from "../../change/codec/rule-parts.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { refusal } from "../../protocol/refusals.ts";

/** The registry of what is installed in a space: a dataset of its index object, read-only over HTTP. */
export const BUNDLES_DATASET = "bundles";

/** Roots that a bundle made by `children` are listed by their root, so that they end with it. */
export const BUNDLE_CHILDREN_DATASET = "bundle_children";

export const BUNDLE_ROOT_TYPE = "svc.bundle";
export const BUNDLE_CHILD_TYPE = "svc.bundle-child";

/** `roots` only grows: whoever installed apart shows up as a loser, never as lost. */
export const BUNDLE_RULES: DatasetRules = {
  name: BUNDLES_DATASET,
  idRule: "user",
  skipHistory: true,
  refuseDelete: () => refusal("bundle.stays"),
  refuseOp(_doc, segments, op) {
    if (segments.length !== 1) return refusal("bundle.path");
    switch (segments[0]) {
      case "roots":
        return op.type === "$addToSet" && typeof op.value === "string" && digestOfCid(op.value)
          ? undefined
          : refusal("bundle.roots");
      case "rootId":
        return op.type === "$set" && typeof op.value === "string" && digestOfCid(op.value)
          ? undefined
          : refusal("bundle.root");
      case "name":
        return setsText(op) ? undefined : refusal("bundle.name");
      case "derived":
        return op.type === "$set" && op.value === true ? undefined : refusal("bundle.derived");
      default:
        return refusal("bundle.field");
    }
  },
};

export const BUNDLE_CHILDREN_RULES: DatasetRules = {
  name: BUNDLE_CHILDREN_DATASET,
  idRule: "user",
  skipHistory: true,
  ...namedBy("object"),
  refuseDelete: () => refusal("bundle.child_stays"),
};
