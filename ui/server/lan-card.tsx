/** The local network as this device sees it: whether it can find peers there, and which ones it has met. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { P2pDebug } from "../../src/protocol/sync.ts";
import { type ApiError, toApiError } from "../api/api-client.ts";
import { syncApi } from "../api/sync-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { Facts } from "../parts/facts.tsx";
import { spaceTitle } from "../parts/space-title.ts";
import { deviceLanText } from "../parts/sync-words.ts";
import { spaces } from "../state/session.ts";

const POLL_MS = 5000;

export function LanCard() {
  const seen = useSignal<P2pDebug | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  useEffect(() => {
    const load = async () => {
      try {
        seen.value = await syncApi.peers();
        error.value = undefined;
      } catch (fault) {
        error.value = toApiError(fault);
      }
    };
    void load();
    const timer = setInterval(() => void load(), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  const lan = seen.value;
  return (
    <section class="card" aria-labelledby="lan-title">
      <h2 id="lan-title">Local network</h2>
      <ErrorNote error={error.value} />
      {lan && (
        <>
          <Facts
            entries={[
              ["State", lan.enabled ? deviceLanText(lan) : "switched off"],
              ["Listening", lan.listenerStarted ? `port ${lan.port}` : "no"],
            ]}
          />
          <ul class="apps">
            {lan.peers.map(({ peerId, spaceIds, connected }) => (
              <li key={peerId}>
                <span class={`state state-${connected ? "good" : "busy"}`}>{connected ? "connected" : "seen"}</span>
                <code>{peerId}</code>
                <span class="faint">{spaceIds.map(titleOf).join(", ")}</span>
              </li>
            ))}
          </ul>
          {lan.enabled && lan.peers.length === 0 && <p class="faint">No other device has been seen.</p>}
        </>
      )}
    </section>
  );
}

function titleOf(spaceId: string): string {
  return spaceTitle(spaces.value?.find(({ id }) => id === spaceId) ?? { id: spaceId });
}
