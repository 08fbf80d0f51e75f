/** State of the server, of the account it serves, and of the network around it. */
import { Facts } from "../parts/facts.tsx";
import { health } from "../state/session.ts";
import { LanCard } from "./lan-card.tsx";
import { ProfileCard } from "./profile-card.tsx";
import { PushCard } from "./push-card.tsx";

export function ServerPage() {
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
      <ProfileCard />
      <LanCard />
      <PushCard configured={state?.push === true} />
    </>
  );
}
