/** The devices of the account, live: which there are, their apps, and which is active for which app. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type ApiError, toApiError } from "../api/api-client.ts";
import { type Device, type DeviceList, deviceApi } from "../api/device-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { LiveLine } from "../parts/live-line.tsx";
import { useLiveRecords } from "../stream/live-records.ts";
import { DeviceCard } from "./device-card.tsx";

export function DevicePage() {
  const live = useLiveRecords("/v1/devices/query", { sort: ["id"], limit: 500 });
  const list = useSignal<DeviceList | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const rows = live.records.value;
  // The rows only show that something changed; the server decides who is active.
  useEffect(() => {
    let current = true;
    deviceApi.list().then(
      (next) => {
        if (!current) return;
        list.value = next;
        error.value = undefined;
      },
      (fault: unknown) => {
        if (current) error.value = toApiError(fault);
      },
    );
    return () => {
      current = false;
    };
  }, [rows]);
  return (
    <>
      <h1>Devices</h1>
      <p class="lead">Every install that opened this account. The list is the same on all of them.</p>
      <LiveLine state={live.state.value} />
      <ErrorNote error={live.error.value ?? error.value} />
      <ul class="cards cards-wide">
        {list.value &&
          inOrder(list.value).map((device) => (
            <DeviceCard key={device.peerId} device={device} list={list.value as DeviceList} />
          ))}
      </ul>
    </>
  );
}

/** Sorts this device first and the others by name. */
function inOrder({ devices, self }: DeviceList): Device[] {
  const rank = ({ peerId }: Device) => (peerId === self ? 0 : 1);
  return devices.toSorted((a, b) => rank(a) - rank(b) || (a.name ?? "").localeCompare(b.name ?? ""));
}
