import type { ComponentChildren } from "preact";

/** A list of terms and their values; entries without a value are omitted. */
export function Facts({ entries }: { entries: readonly (readonly [term: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {entries
        .filter(([, value]) => value !== undefined && value !== "")
        .map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
