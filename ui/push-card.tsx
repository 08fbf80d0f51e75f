/** Whether messages written here reach phones, and what this account is told of by push. */
import { call, toApiError } from "./api-client.ts";
import { ErrorNote } from "./error-note.tsx";
import { Facts } from "./facts.tsx";
import { useLoaded } from "./use-loaded.ts";

interface PushState {
  registered: boolean;
  platform?: string;
  topics: number;
  spaces: number;
}

/** Undefined where no push node is configured. */
async function loadState(): Promise<PushState | undefined> {
  try {
    const token = await call<{ registered: boolean; platform?: string }>("GET", "/v1/push/token");
    const { subscriptions } = await call<{ subscriptions: { spaceKey: string }[] }>("GET", "/v1/push/subscriptions");
    const spaces = new Set(subscriptions.map(({ spaceKey }) => spaceKey)).size;
    return { ...token, topics: subscriptions.length, spaces };
  } catch (error) {
    if (toApiError(error).code === "push.disabled") return undefined;
    throw error;
  }
}

export function PushCard() {
  const { value, error, settled } = useSettled();
  return (
    <section class="card" aria-labelledby="push-title">
      <h2 id="push-title">Push</h2>
      <ErrorNote error={error} />
      {value && (
        <Facts
          entries={[
            ["This device", value.registered ? `has a token (${value.platform})` : "has no token"],
            ["Watched", `${value.topics} topics in ${value.spaces} spaces`],
          ]}
        />
      )}
      {settled && !value && !error && <p class="faint">No push node is configured; push.url names one.</p>}
    </section>
  );
}

/** Tells "nothing there" from "not here yet". */
function useSettled() {
  const loaded = useLoaded(async () => ({ state: await loadState() }), "");
  return { value: loaded.value?.state, error: loaded.error, settled: loaded.value !== undefined };
}
