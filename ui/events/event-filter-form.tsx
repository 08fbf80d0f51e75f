import { useSignal } from "@preact/signals";
import { ScopeFields } from "../parts/scope-fields.tsx";
import { TextField } from "../parts/text-field.tsx";
import { route, setParams } from "../state/router.ts";
import { readEventFilter } from "./event-filter.ts";

/** Chooses which events are shown; the choice is kept in the address. */
export function EventFilterForm() {
  const filter = readEventFilter(route.peek().params);
  const scope = useSignal<string>(filter.scope);
  const spaceId = useSignal(filter.spaceId);
  const type = useSignal(filter.type);
  const target = useSignal(filter.target);
  return (
    <form
      class="query-form"
      onSubmit={(event) => {
        event.preventDefault();
        const space = scope.value === "space" ? spaceId.value : undefined;
        setParams({ scope: scope.value, spaceId: space, type: type.value, target: target.value });
      }}
    >
      <ScopeFields id="filter" scope={scope} spaceId={spaceId} anyScope="device and account" />
      <TextField id="filter-type" label="Type" text={type} placeholder="process.*, ui.open_object" />
      <TextField id="filter-target" label="Target" text={target} />
      <button type="submit">Listen</button>
    </form>
  );
}
