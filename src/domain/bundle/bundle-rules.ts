import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { digestOfCid } from "../../crypto/cid.ts";

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
  refuseDelete: () => "a bundle is uninstalled by deleting its root",
  refuseOp(_doc, segments, op) {
    if (segments.length !== 1) return "a bundle's fields are set as a whole";
    switch (segments[0]) {
      case "roots":
        return op.type === "$addToSet" && typeof op.value === "string" && digestOfCid(op.value)
          ? undefined
          : "roots grow by object ids";
      case "rootId":
        return op.type === "$set" && typeof op.value === "string" && digestOfCid(op.value)
          ? undefined
          : "rootId is an object id";
      case "name":
        return op.type === "$set" && typeof op.value === "string" ? undefined : "name is a text";
      case "derived":
        return op.type === "$set" && op.value === true ? undefined : "derived is true or absent";
      default:
        return "a bundle has name, rootId, roots and derived";
    }
  },
};

export const BUNDLE_CHILDREN_RULES: DatasetRules = {
  name: BUNDLE_CHILDREN_DATASET,
  idRule: "user",
  skipHistory: true,
  refuseCreate: (id) => (digestOfCid(id) ? undefined : "the record's id is no object id"),
  refuseDelete: () => "a child ends with its root",
};
