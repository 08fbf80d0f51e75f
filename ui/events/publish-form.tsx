/** Publishes an event by hand. */
import { useSignal } from "@preact/signals";
import type { EventScope } from "../../src/protocol/event.ts";
import type { Json } from "../../src/protocol/json.ts";
import { ApiError } from "../api/api-client.ts";
import { busApi } from "../api/bus-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { ScopeFields } from "../parts/scope-fields.tsx";
import { TextField } from "../parts/text-field.tsx";

export function PublishForm() {
  const { busy, error, run } = useFormAction();
  const type = useSignal("");
  const scope = useSignal("device");
  const spaceId = useSignal("");
  const target = useSignal("");
  const data = useSignal("");
  const reached = useSignal<number | undefined>(undefined);
  const publish = () =>
    run(async () => {
      const { subscribers } = await busApi.publish({
        type: type.value.trim(),
        scope: scope.value as EventScope,
        ...(scope.value === "space" ? { spaceId: spaceId.value } : {}),
        ...(target.value.trim() === "" ? {} : { target: target.value.trim() }),
        ...(data.value.trim() === "" ? {} : { data: parse(data.value) }),
      });
      reached.value = subscribers;
    });
  return (
    <details class="card">
      <summary>Publish an event</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          publish();
        }}
      >
        <div class="query-form">
          <TextField id="publish-type" label="Type" text={type} placeholder="ui.greeting" required />
          <ScopeFields id="publish" scope={scope} spaceId={spaceId} />
          <TextField id="publish-target" label="Target" text={target} />
        </div>
        <TextField id="publish-data" label="Data (JSON)" text={data} placeholder='{"hello": true}' />
        <ErrorNote error={error} />
        <button type="submit" class="primary" disabled={busy}>
          Publish
        </button>
        {reached.value !== undefined && <span class="faint"> Reached {reached.value} listening streams</span>}
      </form>
    </details>
  );
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (fault) {
    throw new ApiError("data", `The data is not valid JSON: ${fault instanceof Error ? fault.message : fault}`, 0);
  }
}
