/** The frame of the page: the state of the server at the top, and below it the content that the address names. */
import { AccountSetup } from "./account/account-setup.tsx";
import { MnemonicPanel } from "./account/mnemonic-panel.tsx";
import { EventPage } from "./events/event-page.tsx";
import { ObjectPage } from "./object/object-page.tsx";
import { ErrorNote } from "./parts/error-note.tsx";
import { NotFound } from "./parts/not-found.tsx";
import { Tabs } from "./parts/tabs.tsx";
import { DevicePage } from "./server/device-page.tsx";
import { ProcessPage } from "./server/process-page.tsx";
import { ServerPage } from "./server/server-page.tsx";
import { ClosedSpace } from "./space/closed-space.tsx";
import { SpaceListPage } from "./space/space-list-page.tsx";
import { SpacePage } from "./space/space-page.tsx";
import { href, route } from "./state/router.ts";
import { authStatus, health, newMnemonic, serverError, spaces } from "./state/session.ts";

const SECTIONS = ["spaces", "devices", "processes", "events", "server"] as const;

export function App() {
  const { segments } = route.value;
  const section = segments[0] ?? "spaces";
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href={href("spaces")}>
          svc
        </a>
        {authStatus.value?.authorized && newMnemonic.value === undefined && (
          <Tabs
            label="Sections"
            tabs={SECTIONS.map((name) => ({
              title: `${name[0]?.toUpperCase()}${name.slice(1)}`,
              to: [name],
              current: name === section,
            }))}
          />
        )}
        <span class="grow" />
        <a class="quiet" href="/swagger">
          API
        </a>
        <ServerState />
      </header>
      <main id="main" tabIndex={-1}>
        <Warnings />
        <Content segments={segments} />
      </main>
    </>
  );
}

function Content({ segments }: { segments: readonly string[] }) {
  if (newMnemonic.value !== undefined) return <MnemonicPanel mnemonic={newMnemonic.value} />;
  const auth = authStatus.value;
  if (!auth) return serverError.value ? <ErrorNote error={serverError.value} /> : <p class="faint">Loading…</p>;
  if (!auth.authorized) return <AccountSetup />;
  const [section = "spaces", spaceId, tab, objectId, view] = segments;
  if (section === "devices") return <DevicePage />;
  if (section === "processes") return <ProcessPage />;
  if (section === "events") return <EventPage />;
  if (section === "server") return <ServerPage />;
  if (section !== "spaces") return <NotFound to={["spaces"]} label="To the spaces" />;
  if (spaceId === undefined) return <SpaceListPage />;
  const space = spaces.value?.find(({ id }) => id === spaceId);
  if (space && space.status !== "active" && space.status !== "guest_revoked") return <ClosedSpace space={space} />;
  if (tab === "objects" && objectId !== undefined) {
    return <ObjectPage key={objectId} spaceId={spaceId} objectId={objectId} view={view} />;
  }
  return <SpacePage key={spaceId} spaceId={spaceId} tab={tab ?? "objects"} />;
}

/** Problems in the server's health that somebody must act on. */
function Warnings() {
  return health.value?.warnings?.map(({ code, message }) => (
    <div key={code} class="note note-warning" role="alert">
      <p>{message}</p>
    </div>
  ));
}

function ServerState() {
  const [tone, text] = serverState();
  return (
    <span class={`state state-${tone}`} role="status">
      {text}
    </span>
  );
}

function serverState(): [tone: "good" | "busy" | "bad", text: string] {
  if (serverError.value) return ["bad", "Not reachable"];
  if (!health.value) return ["busy", "Connecting"];
  if (health.value.bootstrapping) return ["busy", "Starting up"];
  return health.value.account === "" ? ["busy", "No account"] : ["good", "Running"];
}
