/** One space: its objects, datasets and members, its sync state, and facts about it. */
import { api } from "../api/api-client.ts";
import { ObjectList } from "../object/object-list.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { NotFound } from "../parts/not-found.tsx";
import { spaceTitle } from "../parts/space-title.ts";
import { Tabs } from "../parts/tabs.tsx";
import { DatasetList } from "../record/dataset-list.tsx";
import { href } from "../state/router.ts";
import { spaces } from "../state/session.ts";
import { useLoaded } from "../state/use-loaded.ts";
import { SearchBox, SearchResults } from "./search-view.tsx";
import { SpaceAbout } from "./space-about.tsx";
import { SpaceMembers } from "./space-members.tsx";
import { SpaceSync } from "./space-sync.tsx";

/** Not a tab: the view of search results. */
const SEARCH = "search";
const TABS = ["objects", "datasets", "members", "sync", "about"] as const;

export function SpacePage({ spaceId, tab }: { spaceId: string; tab: string }) {
  const { value: loaded, error } = useLoaded(() => api.space(spaceId), spaceId);
  // Once the space is in the list of all spaces, that list is newer.
  const space = spaces.value?.find(({ id }) => id === spaceId) ?? loaded;
  if (error) return <ErrorNote error={error} />;
  if (!space) return <p class="faint">Loading…</p>;
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href("spaces")}>Spaces</a>
      </nav>
      <h1>{spaceTitle(space)}</h1>
      <SearchBox key={spaceId} spaceId={spaceId} />
      <Tabs
        label="Parts of the space"
        tabs={TABS.map((name) => ({
          title: `${name[0]?.toUpperCase()}${name.slice(1)}`,
          to: ["spaces", spaceId, name],
          current: name === tab,
        }))}
      />
      {tab === "objects" && <ObjectList spaceId={spaceId} />}
      {tab === "datasets" && <DatasetList spaceId={spaceId} />}
      {tab === "members" && <SpaceMembers space={space} />}
      {tab === "sync" && <SpaceSync spaceId={spaceId} />}
      {tab === "about" && <SpaceAbout space={space} />}
      {tab === SEARCH && <SearchResults spaceId={spaceId} />}
      {![...TABS, SEARCH].some((name) => name === tab) && (
        <NotFound to={["spaces", spaceId]} label="To the objects of the space" />
      )}
    </>
  );
}
