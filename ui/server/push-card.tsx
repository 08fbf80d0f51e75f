/** Whether messages written here reach phones, and which messages notify this account by push. */
import { call } from "../api/api-client.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { Facts } from "../parts/facts.tsx";
import { useLoaded } from "../state/use-loaded.ts";

interface PushState {
  registered: boolean;
  platform?: string;
  topics: number;
  spaces: number;
}

async function loadState(): Promise<PushState> {
  const token = await call<{ registered: boolean; platform?: string }>("GET", "/v1/push/token");
  const { subscriptions } = await call<{ subscriptions: { spaceKey: string }[] }>("GET", "/v1/push/subscriptions");
  const spaces = new Set(subscriptions.map(({ spaceKey }) => spaceKey)).size;
  return { ...token, topics: subscriptions.length, spaces };
}

export function PushCard({ configured }: { configured: boolean }) {
  return (
    <section class="card" aria-labelledby="push-title">
      <h2 id="push-title">Push</h2>
      {configured ? <State /> : <p class="faint">No push node is configured; push.url names one.</p>}
    </section>
  );
}

function State() {
  const { value, error } = useLoaded(loadState, "");
  return (
    <>
      <ErrorNote error={error} />
      {value && (
        <Facts
          entries={[
            ["This device", value.registered ? `has a token (${value.platform})` : "has no token"],
            ["Watched", `${value.topics} topics in ${value.spaces} spaces`],
          ]}
        />
      )}
    </>
  );
}
