/** Fields for the scope of an event or a filter, and for its space if the scope is space. */
import type { Signal } from "@preact/signals";
import { spaces } from "../state/session.ts";
import { spaceTitle } from "./space-title.ts";

export interface ScopeFieldsProps {
  /** Prefix of the fields' ids. */
  id: string;
  scope: Signal<string>;
  spaceId: Signal<string>;
  /** The label for no scope; absent where a scope must be chosen. */
  anyScope?: string;
}

export function ScopeFields({ id, scope, spaceId, anyScope }: ScopeFieldsProps) {
  const active = (spaces.value ?? []).filter(({ status }) => status === "active");
  return (
    <>
      <div class="field">
        <label for={`${id}-scope`}>Scope</label>
        <select
          id={`${id}-scope`}
          value={scope}
          onChange={(event) => {
            scope.value = event.currentTarget.value;
            if (scope.value === "space" && spaceId.value === "") spaceId.value = active[0]?.id ?? "";
          }}
        >
          {anyScope !== undefined && <option value="">{anyScope}</option>}
          <option value="device">device</option>
          <option value="account">account</option>
          <option value="space">space</option>
        </select>
      </div>
      {scope.value === "space" && (
        <div class="field">
          <label for={`${id}-space`}>Space</label>
          <select
            id={`${id}-space`}
            value={spaceId}
            onChange={(event) => {
              spaceId.value = event.currentTarget.value;
            }}
          >
            {active.map((space) => (
              <option key={space.id} value={space.id}>
                {spaceTitle(space)}
              </option>
            ))}
          </select>
        </div>
      )}
    </>
  );
}
