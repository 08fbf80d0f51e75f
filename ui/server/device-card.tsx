/** One device. This server's own can be renamed and given apps; another can be pruned. */
import { useSignal } from "@preact/signals";
import { type Device, type DeviceList, deviceApi } from "../api/device-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { Facts } from "../parts/facts.tsx";
import { useFormAction } from "../parts/form-action.ts";

export function DeviceCard({ device, list }: { device: Device; list: DeviceList }) {
  const { busy, error, run } = useFormAction();
  const isSelf = device.peerId === list.self;
  const apps = Object.entries(device.apps ?? {});
  return (
    <li class="card">
      <h2>
        {device.name || "Unnamed"} {isSelf && <span class="tag">this device</span>}
      </h2>
      <Facts
        entries={[
          ["System", device.os],
          ["Version", device.version],
          ["Peer id", <code key="peer">{device.peerId}</code>],
        ]}
      />
      {apps.length > 0 && (
        <ul class="apps">
          {apps.map(([slug, facts]) => {
            const isActive = list.active?.[slug] === device.peerId;
            return (
              <li key={slug}>
                <code>{slug}</code> <span class="faint">{String(facts["version"] ?? "")}</span>
                {isActive && <span class="badge">active</span>}
                <span class="grow" />
                {isSelf && !isActive && (
                  <button
                    type="button"
                    class="plain"
                    disabled={busy}
                    onClick={() => run(() => deviceApi.activate(slug))}
                  >
                    Activate here
                  </button>
                )}
                {isSelf && (
                  <button
                    type="button"
                    class="plain"
                    disabled={busy}
                    onClick={() => run(() => deviceApi.uninstall(slug))}
                  >
                    Remove
                  </button>
                )}
              </li>
            );
          })}
        </ul>
      )}
      <ErrorNote error={error} />
      {isSelf ? (
        <OwnForms name={device.name ?? ""} />
      ) : (
        <ConfirmButton
          label="Prune"
          question="Prune for ever"
          disabled={busy}
          onConfirm={() => run(() => deviceApi.prune(device.peerId))}
        />
      )}
    </li>
  );
}

function OwnForms({ name }: { name: string }) {
  const rename = useFormAction();
  const install = useFormAction();
  const newName = useSignal(name);
  const slug = useSignal("");
  return (
    <>
      <form
        class="inline-form tight"
        onSubmit={(event) => {
          event.preventDefault();
          rename.run(() => deviceApi.rename(newName.value.trim()));
        }}
      >
        <input
          aria-label="Name of this device"
          required
          value={newName}
          onInput={(event) => {
            newName.value = event.currentTarget.value;
          }}
        />
        <button type="submit" disabled={rename.busy || newName.value.trim() === name}>
          Rename
        </button>
        <ErrorNote error={rename.error} />
      </form>
      <form
        class="inline-form tight"
        onSubmit={(event) => {
          event.preventDefault();
          install.run(async () => {
            await deviceApi.install(slug.value.trim());
            slug.value = "";
          });
        }}
      >
        <input
          aria-label="App to install"
          placeholder="App, such as agent"
          required
          value={slug}
          onInput={(event) => {
            slug.value = event.currentTarget.value;
          }}
        />
        <button type="submit" disabled={install.busy}>
          Add app
        </button>
        <ErrorNote error={install.error} />
      </form>
    </>
  );
}
