/** Whether a space's data is elsewhere too, live, and what rounds with each peer brought. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { PeerCounters, SpaceDebug, SpaceSyncStatus, SyncState } from "../../src/protocol/sync.ts";
import { type ApiError, toApiError } from "../api/api-client.ts";
import { syncApi } from "../api/sync-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { Facts } from "../parts/facts.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { lanText, STATE_WORDS } from "../parts/sync-words.ts";
import { useStream } from "../stream/stream.ts";

const TONES: Readonly<Record<SyncState, "good" | "busy" | "bad">> = {
  unknown: "busy",
  offline: "busy",
  syncing: "busy",
  synced: "good",
  error: "bad",
};

export function SpaceSync({ spaceId }: { spaceId: string }) {
  const { busy, error, run } = useFormAction();
  const status = useSignal<SpaceSyncStatus | undefined>(undefined);
  const debug = useSignal<SpaceDebug | undefined>(undefined);
  const debugError = useSignal<ApiError | undefined>(undefined);
  const stream = useStream({ method: "GET", path: "/v1/sync-status/subscribe" }, ({ event, data }) => {
    const next = data as unknown as SpaceSyncStatus;
    if (event === "status" && next.spaceId === spaceId) status.value = next;
  });
  const loadDebug = async () => {
    try {
      debug.value = await syncApi.debug(spaceId);
      debugError.value = undefined;
    } catch (fault) {
      debugError.value = toApiError(fault);
    }
  };
  useEffect(() => void loadDebug(), [spaceId, status.value]);
  return (
    <>
      <section class="card" aria-label="Sync status">
        <div class="head-line">
          <h2>
            {status.value && (
              <span class={`state state-${TONES[status.value.state]}`}>{STATE_WORDS[status.value.state]}</span>
            )}
          </h2>
          <span class="grow" />
          <button
            type="button"
            disabled={busy}
            onClick={() =>
              run(async () => {
                await syncApi.force(spaceId);
                await loadDebug();
              })
            }
          >
            {busy ? "Syncing…" : "Sync now"}
          </button>
        </div>
        <ErrorNote error={stream.error.value ?? error} />
        {status.value && <Figures status={status.value} debug={debug.value} />}
      </section>
      <ErrorNote error={debugError.value} />
      <Alarms alarms={debug.value?.alarms ?? []} />
      <Peers peers={debug.value?.peers ?? []} />
    </>
  );
}

const ALARMS: Readonly<Record<SpaceDebug["alarms"][number]["kind"], string>> = {
  split:
    "Somebody shows different people different members and rights. The first that came here stands until a device of the owner decides.",
  rolled_back: "The members and rights of this space, here or on the network, are older than what was seen before.",
  key: "Somebody who changed the members gave out a key that does not fit: some may not be able to read what is written.",
};

/** Faults of the ACL log, whoever caused them. */
function Alarms({ alarms }: Pick<SpaceDebug, "alarms">) {
  const kinds = [...new Set(alarms.map(({ kind }) => kind))];
  return kinds.map((kind) => (
    <div key={kind} class="note note-warning" role="alert">
      <p>{ALARMS[kind]}</p>
    </div>
  ));
}

/** Undefined while nothing was found. */
function repairsText({ count, latest }: SpaceDebug["repairs"]): string | undefined {
  const [last] = latest;
  return (
    last && `found ${count === 1 ? "once" : `${count} times`}, last ${new Date(last.at).toLocaleString()}: ${last.what}`
  );
}

const changes = (count: number) => (count === 1 ? "1 change" : `${count} changes`);

function Figures({ status, debug }: { status: SpaceSyncStatus; debug: SpaceDebug | undefined }) {
  return (
    <Facts
      entries={[
        ["Kept elsewhere too", `${status.synced} of ${status.total} objects`],
        ["Network", status.networkPeers > 0 ? "connected" : "not connected"],
        ["Local network", lanText(status)],
        ["Last in step", status.lastSyncedAt === null ? "never" : new Date(status.lastSyncedAt).toLocaleString()],
        ["Only on this device", debug && (debug.unconfirmed === 0 ? "nothing" : changes(debug.unconfirmed))],
        [
          "Members and rights",
          debug && debug.unconfirmedRights > 0
            ? `${changes(debug.unconfirmedRights)} of them only on this device`
            : undefined,
        ],
        [
          "Not complete yet",
          debug && debug.parked > 0 ? `${changes(debug.parked)} waiting for others that have not come` : undefined,
        ],
        ["Refused for good", debug && debug.quarantined.length > 0 ? changes(debug.quarantined.length) : undefined],
        ["Changed by the disk", debug && repairsText(debug.repairs)],
      ]}
    />
  );
}

function Peers({ peers }: { peers: readonly PeerCounters[] }) {
  if (peers.length === 0)
    return (
      <p class="empty">
        Nothing has been exchanged with anybody since the server was started. It happens by itself as soon as another
        device or the network is reached.
      </p>
    );
  return (
    <div class="table-frame">
      <table>
        <caption class="hidden">What was exchanged with whom since the start</caption>
        <thead>
          <tr>
            {["With", "Last time", "New objects' changes", "Other changes", "What went wrong"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {peers.map((peer) => (
            <tr key={peer.peerId}>
              <td>{peer.peerId === "network" ? "the network" : <code>{peer.peerId}</code>}</td>
              <td>{peer.lastSyncAt === null ? "" : new Date(peer.lastSyncAt).toLocaleTimeString()}</td>
              <td>{peer.new}</td>
              <td>{peer.changed}</td>
              <td>{peer.lastErr}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
