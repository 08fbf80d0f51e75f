/** One space: its objects, its datasets, and what is known about it. */
import type { SpaceInfo } from "../src/protocol/space.ts";
import { api } from "./api-client.ts";
import { DatasetList } from "./dataset-list.tsx";
import { displayValue } from "./display-value.ts";
import { ErrorNote } from "./error-note.tsx";
import { Facts } from "./facts.tsx";
import { ObjectList } from "./object-list.tsx";
import { href } from "./router.ts";
import { spaceTitle } from "./space-title.ts";
import { Tabs } from "./tabs.tsx";
import { useLoaded } from "./use-loaded.ts";

export function SpacePage({ spaceId, tab }: { spaceId: string; tab: string }) {
  const { value: space, error } = useLoaded(() => api.space(spaceId), spaceId);
  if (error) return <ErrorNote error={error} />;
  if (!space) return <p class="faint">Loading…</p>;
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href("spaces")}>Spaces</a>
      </nav>
      <h1>{spaceTitle(space)}</h1>
      <Tabs
        label="Parts of the space"
        tabs={["objects", "datasets", "about"].map((name) => ({
          title: `${name[0]?.toUpperCase()}${name.slice(1)}`,
          to: ["spaces", spaceId, name],
          current: name === tab,
        }))}
      />
      {tab === "objects" && <ObjectList spaceId={spaceId} />}
      {tab === "datasets" && <DatasetList spaceId={spaceId} />}
      {tab === "about" && <AboutSpace space={space} />}
    </>
  );
}

function AboutSpace({ space }: { space: SpaceInfo }) {
  return (
    <section class="card">
      <Facts
        entries={[
          ["Name", space.name],
          ["Description", space.description],
          ["Your role", space.ownRole],
          ["Status", space.status],
          ["Since", displayValue(space.createdAt)],
          ["Space id", <code key="id">{space.id}</code>],
          ["Created by", space.author && <code key="author">{space.author}</code>],
          ["Settings", space.settings && <code key="settings">{JSON.stringify(space.settings)}</code>],
        ]}
      />
    </section>
  );
}
