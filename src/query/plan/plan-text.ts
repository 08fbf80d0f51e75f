/** Describes a plan in words for people: which way was chosen and what it is expected to read. */
import { COUNTED_CANDIDATES, type NarrowIndex, type QueryPlan } from "./query-plan.ts";

export function planText({ access, estimate }: QueryPlan): string {
  const { rows, entries, costMs } = estimate;
  const counts = [`${rows} rows`, ...(entries > 0 ? [`${entries} index entries`] : []), `${costMs.toPrecision(2)} ms`];
  return `${accessText(access)}; estimated ${counts.join(", ")}`;
}

function accessText(access: QueryPlan["access"]): string {
  switch (access.kind) {
    case "byId":
      return access.skips ? "rows by id; only those of the window are read" : "rows by id, until the window is full";
    case "bySort":
      return `index on ${access.index.path} in the order of the sort, until the window is full`;
    case "byFilter":
      return `index on ${access.index.path}, ${candidatesText(access.index)}, sorted in a bounded heap`;
    case "byKeys": {
      const { path, members, order } = access.keys;
      const inOrder = order.startsWith("key") ? " in the order of the sort" : "";
      const beside = members.length === 0 ? "" : ` beside ${members.map((member) => member.path).join(", ")}`;
      return `index on ${path}${inOrder}${beside}, by its keys alone; only rows of the window are read`;
    }
    case "scan":
      return "all rows, sorted in a bounded heap";
  }
}

export function candidatesText({ candidates }: NarrowIndex): string {
  return candidates < COUNTED_CANDIDATES ? `${candidates} candidates` : `at least ${COUNTED_CANDIDATES} candidates`;
}
