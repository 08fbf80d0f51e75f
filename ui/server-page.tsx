/** State of the server and of the account it serves. */
import { api } from "./api-client.ts";
import { ErrorNote } from "./error-note.tsx";
import { Facts } from "./facts.tsx";
import { health } from "./session.ts";
import { useLoaded } from "./use-loaded.ts";

export function ServerPage() {
  const { value: account, error } = useLoaded(() => api.account(), "");
  const state = health.value;
  return (
    <>
      <h1>Server</h1>
      <section class="card" aria-labelledby="health-title">
        <h2 id="health-title">Health</h2>
        {state && (
          <Facts
            entries={[
              ["Status", state.status],
              ["Version", state.version],
              ["Started", new Date(state.startedAt).toLocaleString()],
              ["Boot pass", state.bootstrapping ? "running" : "done"],
            ]}
          />
        )}
      </section>
      <section class="card" aria-labelledby="account-title">
        <h2 id="account-title">Account</h2>
        <ErrorNote error={error} />
        {account && (
          <Facts
            entries={[
              ["Name", account.metadata?.name],
              ["Account id", <code key="id">{account.id}</code>],
              ["This device", <code key="peer">{account.peerId}</code>],
              ["Own space", <code key="tech">{account.techSpaceId}</code>],
            ]}
          />
        )}
      </section>
    </>
  );
}
