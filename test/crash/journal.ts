/**
 * What the writers asked for and what was acknowledged, and the check of a restarted server against it. The rule: an
 * acknowledged write is there for ever, an unacknowledged one is there wholly or not at all, and what a restart has
 * once shown stays as it was shown.
 */
import type { Client, JsonObject, Page, Row, SpaceInfo } from "../support/server/client.ts";
import { type Collection, creationVersion, openCollection } from "../support/server/fixtures.ts";

/** Of the spaces that were whole before, so many are looked into at a time. */
const SPACES_LOOKED_INTO = 6;

/** `unknown` until a restart has shown which it became. */
type Fate = "sent" | "kept" | "lost";

interface Group {
  /** Records that one change writes. */
  ids: string[];
  fate: Fate;
}
interface Counter {
  acknowledged: number;
  sent: number;
}

export interface Journal {
  readonly groupsByToken: Map<string, Group>;
  readonly countersById: Map<string, Counter>;
  readonly deletedById: Map<string, Fate>;
  readonly objectsByName: Map<string, { id?: string; fate: Fate }>;
  readonly spacesByName: Map<string, { id?: string; fate: Fate }>;
  readonly changeIds: Set<string>;
  /** Ids of spaces that a restart has shown to be whole. */
  readonly wholeSpaces: Set<string>;
  /** Rules that were broken while writing (a version handed out twice, say). */
  readonly faults: string[];
  acknowledgeChange(changeId: string): void;
}

export function createJournal(): Journal {
  const changeIds = new Set<string>();
  const faults: string[] = [];
  return {
    groupsByToken: new Map(),
    countersById: new Map(),
    deletedById: new Map(),
    objectsByName: new Map(),
    spacesByName: new Map(),
    changeIds,
    wholeSpaces: new Set(),
    faults,
    acknowledgeChange: (changeId) => {
      if (changeId === "") faults.push("a synced write was acknowledged without a change id");
      if (changeIds.has(changeId)) faults.push(`the change id ${changeId} was handed out twice`);
      changeIds.add(changeId);
    },
  };
}

/**
 * Checks everything against what the server shows now. Returns the faults; settles the fate of what was in flight. Of the
 * spaces that were whole before it looks into some, by turns, or with `everySpace` into all.
 */
export async function verify(
  client: Client,
  items: Collection,
  journal: Journal,
  { everySpace = false }: { everySpace?: boolean } = {},
): Promise<string[]> {
  const faults = [...journal.faults];
  const collection = openCollection(client, items);
  const rows = (await collection.query({ sort: ["id"] })).records;
  checkGroups(rows, journal, faults);
  checkCounters(rows, journal, faults);
  checkDeleted(rows, journal, faults);
  await checkObjects(client, items.spaceId, journal, faults);
  await checkSpaces(client, journal, faults, everySpace ? Number.POSITIVE_INFINITY : SPACES_LOOKED_INTO);
  return faults;
}

function checkGroups(rows: readonly Row[], journal: Journal, faults: string[]): void {
  const rowsByToken = Map.groupBy(
    rows.filter((row) => typeof row["s"] === "string" && row.id.startsWith("g-")),
    (row) => row["s"] as string,
  );
  const versions = new Set<string>();
  for (const [token, group] of journal.groupsByToken) {
    const present = rowsByToken.get(token) ?? [];
    const alive = group.ids.filter((id) => journal.deletedById.get(id) === undefined);
    const found = present.filter((row) => alive.includes(row.id)).length;
    if (found !== 0 && found !== alive.length)
      faults.push(`${token}: ${found} of ${alive.length} records: half applied`);
    if (group.fate === "kept" && found < alive.length)
      faults.push(`${token}: acknowledged, but ${found} of ${alive.length} are there`);
    if (group.fate === "lost" && found > 0) faults.push(`${token}: came back after a restart that did not show it`);
    if (group.fate === "sent" && alive.length > 0) group.fate = found > 0 ? "kept" : "lost";
    const created = new Set(present.map(creationVersion));
    if (created.size > 1) faults.push(`${token}: one change, but ${created.size} creation versions`);
    for (const version of created) {
      if (versions.has(version)) faults.push(`${token}: shares its version ${version} with another change`);
      versions.add(version);
    }
  }
  for (const token of rowsByToken.keys())
    if (!journal.groupsByToken.has(token)) faults.push(`${token}: nobody wrote this`);
}

/** Each increment adds its number to the record's list in the same change, so the two can never disagree. */
function checkCounters(rows: readonly Row[], journal: Journal, faults: string[]): void {
  for (const [id, counter] of journal.countersById) {
    const row = rows.find((candidate) => candidate.id === id);
    const count = Number(row?.["n"] ?? 0);
    const list = (row?.["t"] ?? []) as number[];
    if (count < counter.acknowledged || count > counter.sent) {
      faults.push(`${id}: ${count}, but ${counter.acknowledged} were acknowledged of ${counter.sent} sent`);
    }
    const steps = [...list].sort((a, b) => a - b);
    if (steps.length !== count) faults.push(`${id}: counted ${count}, but lists ${steps.length} steps: half applied`);
    counter.acknowledged = count;
    counter.sent = count;
  }
}

function checkDeleted(rows: readonly Row[], journal: Journal, faults: string[]): void {
  const present = new Set(rows.map((row) => row.id));
  for (const [id, fate] of journal.deletedById) {
    if (fate === "kept" && present.has(id)) faults.push(`${id}: its deletion was acknowledged, but it is there`);
    if (fate !== "sent") continue;
    if (present.has(id)) journal.deletedById.delete(id);
    else journal.deletedById.set(id, "kept");
  }
}

async function checkObjects(client: Client, spaceId: string, journal: Journal, faults: string[]): Promise<void> {
  const page = await client.post<Page>(`/v1/spaces/${spaceId}/objects/query`, {
    filter: { "svc.name": { $regex: "^obj-" } },
  });
  const rowsByName = new Map(page.records.map((row) => [String((row["svc"] as JsonObject)["name"]), row]));
  for (const [name, row] of rowsByName) {
    const nav = (row["nav"] ?? {}) as JsonObject;
    const whole =
      typeof row["author"] === "string" &&
      row["createdAt"] !== undefined &&
      row["modifiedAt"] !== undefined &&
      row["spaceId"] === spaceId &&
      typeof nav["pos"] === "string" &&
      nav["pos"] !== "" &&
      nav["type"] === 1;
    if (!whole) faults.push(`${name}: half created: ${JSON.stringify(row)}`);
    if (!journal.objectsByName.has(name)) faults.push(`${name}: nobody created this object`);
  }
  for (const [name, entry] of journal.objectsByName) decideFate(name, entry, rowsByName.get(name)?.id, faults);
}

async function checkSpaces(client: Client, journal: Journal, faults: string[], atMost: number): Promise<void> {
  // A space whose making was interrupted is finished behind the listener: until then nobody knows what becomes of it.
  const { bootstrapping } = await client.get<{ bootstrapping: boolean }>("/v1/health");
  const list = await client.get<SpaceInfo[]>("/v1/spaces?status=all");
  const byName = new Map(list.map((space) => [space.name ?? "", space]));
  const { wholeSpaces } = journal;
  // Those that were looked into longest ago come first.
  const again = [...wholeSpaces].flatMap((id) => list.find((space) => space.id === id) ?? []).slice(0, atMost);
  for (const space of [...list.filter(({ id }) => !wholeSpaces.has(id)), ...again]) {
    const fault = await usableSpace(client, space);
    if (fault) faults.push(`${space.name ?? space.id}: ${fault}`);
    wholeSpaces.delete(space.id);
    wholeSpaces.add(space.id);
  }
  for (const [name, entry] of journal.spacesByName) {
    const found = byName.get(name)?.id;
    if (found !== undefined || entry.fate !== "sent" || !bootstrapping) decideFate(name, entry, found, faults);
  }
}

/** What is wrong with a space that is listed; a half-created one may be absent but never listed and broken. */
export async function usableSpace(client: Client, space: SpaceInfo): Promise<string | undefined> {
  if (space.status !== "active") return `status ${space.status}`;
  if (space.ownRole !== "owner" || space.spaceIndexObjectId === undefined)
    return `half created: ${JSON.stringify(space)}`;
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["GET", "/types", undefined],
    ["GET", "/datasets", undefined],
    ["POST", "/objects/query", {}],
  ] as const) {
    const reply = await client.request(method, `/v1/spaces/${space.id}${path}`, body ? { body } : {});
    if (reply.status !== 200) return `${method} ${path}: ${reply.status} ${reply.text.slice(0, 200)}`;
  }
  return undefined;
}

function decideFate(
  name: string,
  entry: { id?: string; fate: Fate },
  found: string | undefined,
  faults: string[],
): void {
  if (entry.fate === "kept" && found === undefined) faults.push(`${name}: acknowledged, but it is not there`);
  if (entry.fate === "kept" && entry.id !== undefined && found !== undefined && found !== entry.id) {
    faults.push(`${name}: its id was ${entry.id} and is ${found}`);
  }
  if (entry.fate === "lost" && found !== undefined)
    faults.push(`${name}: came back after a restart that did not show it`);
  if (entry.fate === "sent") entry.fate = found === undefined ? "lost" : "kept";
  if (found !== undefined) entry.id = found;
}
