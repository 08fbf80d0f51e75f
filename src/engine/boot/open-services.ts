import { createDirectAddService } from "../../account/joining/direct-add-service.ts";
import { createJoinDesk } from "../../account/joining/join-desk.ts";
import { createJoinRequests } from "../../account/joining/join-requests.ts";
import { createJoinService } from "../../account/joining/join-service.ts";
import { createOneToOneService } from "../../account/joining/one-to-one-service.ts";
import { createSpaceClaims } from "../../account/joining/space-claims.ts";
import { createSpaceCreation } from "../../account/life/space-creation.ts";
import { createSpaceLife } from "../../account/life/space-life.ts";
import type { AclBuild, ComposeOptions } from "../../acl/compose/compose.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { closePart } from "../../base/service.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { createLiveQueries } from "../../domain/live/live-queries.ts";
import { createRecordQueries } from "../../domain/record/record-query.ts";
import { PAIR_PROFILES_DATASET } from "../../space/pair-profiles.ts";
import { placesOf } from "../../space/port/places.ts";
import type { Space } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceHolds } from "../../space/space-holds.ts";
import { createOutbox } from "../../sync/inbox/outbox.ts";
import { createReceivedMessages } from "../../sync/inbox/received-messages.ts";
import type { SyncService } from "../../sync/sync-service.ts";
import type { AccountFiles } from "../account-files.ts";
import { crashPoint } from "../crash-point.ts";
import { inboxBoxOf } from "../inbox-box.ts";
import { createInvitationMessages, invitationHandlers } from "../invitations.ts";
import { createProfileNews } from "../profile-news.ts";
import { createRightsFollower } from "../rights-follower.ts";
import { createSpaceServices, type SpaceServices } from "../space-services.ts";
import { createSpaceServicesRegistry } from "../space-services-registry.ts";
import { createSpacesListing } from "../spaces-listing.ts";
import type { OpenAccount } from "./open-account.ts";
import type { Bus } from "./open-bus.ts";
import type { Stores } from "./open-stores.ts";

/** How long to wait for the first round of a space that was just found. */
const REACH_MS = 3_000;
const REACH_STEP_MS = 20;

interface OpenServicesDeps {
  parts: AsyncDisposableStack;
  stores: Stores;
  opened: OpenAccount;
  bus: Bus;
  sync: SyncService;
  files: AccountFiles;
  events: SpaceEvents;
  holds: SpaceHolds;
  clock: Clock;
  log: Log;
  hasNetwork: boolean;
}

export type OpenServices = ReturnType<typeof openServices>;

/** Boot, phase 3, closed with `parts`: opens the services that answer requests, on spaces that sync keeps up to date. */
export function openServices(deps: OpenServicesDeps) {
  const { parts, stores, opened, sync, events, clock, log } = deps;
  const { account, tech, secrets, farewells, geneses, spaces } = opened;
  const changeAcl = (space: Space, build: AclBuild, options?: ComposeOptions) =>
    sync.changeAcl(space.replica, build, options);
  const profile = () => tech.profile();
  const creation = createSpaceCreation({
    account,
    store: stores.account,
    paths: stores.paths,
    tech,
    roots: opened.roots,
    spaces,
    log,
    crashPoint,
  });
  const life = createSpaceLife({
    account,
    clock,
    log,
    store: stores.account,
    tech,
    spaces,
    creation,
    geneses,
    farewells,
    events,
    changeAcl,
    secrets,
  });
  const box = inboxBoxOf(tech.space);
  const outbox = createOutbox({ account, box, clock, hasNetwork: deps.hasNetwork });
  const messages = createInvitationMessages({ outbox, profile });
  const isKnown = (identity: string): boolean => stores.account.spacesOf(identity).length > 0;
  const directAdds = createDirectAddService({ tech, spaces, secrets, isKnown });
  const claims = createSpaceClaims({
    account,
    store: stores.account,
    clock,
    log,
    findAclLog: sync.findAclLog,
    isKnown,
    isWanted: directAdds.isWanted,
    isHere: spaces.isHere,
    leadsThere: (spaceId, secret) =>
      spaces.use(spaceId, async (space) =>
        placesOf(space).some((place) => place.secret && equalBytes(place.secret, secret)),
      ),
    verified: directAdds.register,
  });
  const oneToOne = createOneToOneService({
    account,
    tech,
    store: stores.account,
    spaces,
    clock,
    profile,
    announce: messages.oneToOne,
  });
  const requests = createJoinRequests({ account, clock, secrets, handIn: messages.asked });
  const joins = createJoinService({
    tech,
    spaces,
    life,
    farewells,
    secrets,
    requests,
    clock,
    log,
    changeAcl,
    findAclLog: sync.findAclLog,
    mayAnswer: deps.hasNetwork,
    round: sync.round,
    reach: (spaceId) => firstRound(sync, spaceId),
    profile,
  });
  const desk = createJoinDesk({
    tech,
    spaces,
    answer: messages.answered,
    admit: messages.added,
    roundSoon: sync.roundSoon,
  });
  const handlers = invitationHandlers({ claims, oneToOne, desk, joins, hints: opened.hints });
  const received = createReceivedMessages({ account, box, handlers, clock, log });
  const { identities } = opened;
  const rights = parts.adopt(createRightsFollower({ identities, changeAcl, isOver: farewells.has, log }), closePart);
  const followRights = (space: Space): void => {
    if (space.id === tech.space.id) return;
    joins.rightsChanged(space);
    rights.changed(space);
  };
  events.on("opened", followRights);
  events.on("aclChanged", followRights);
  const notifyAdmitted = (space: Space): void => {
    if (space.id === tech.space.id) return;
    announceIn(space, spaces, messages).catch((err: unknown) => {
      if (!space.engine.closing()) log.warn("who was let in could not be told", { err, spaceId: space.id });
    });
  };
  events.on("opened", notifyAdmitted);
  events.on("aclChanged", notifyAdmitted);
  const takeEarlyRequests = (space: Space): void => {
    desk.aclChanged(space.id).catch((err: unknown) => {
      if (!space.engine.closing())
        log.warn("requests to join that came early could not be taken", { err, spaceId: space.id });
    });
  };
  events.on("opened", takeEarlyRequests);
  events.on("aclChanged", takeEarlyRequests);
  events.on("committed", (space, { touched }) => {
    if (touched.some(({ dataset }) => dataset === PAIR_PROFILES_DATASET)) followRights(space);
  });
  events.on("over", rights.ended);
  events.on("ended", joins.ended);

  const bySpace = createSpaceServicesRegistry({
    events,
    holds: deps.holds,
    build: (space) => servicesOf(space, deps, messages),
  });
  const space = async (spaceId: string): Promise<SpaceServices> => bySpace.of(await spaces.open(spaceId));
  const profileNews = createProfileNews({ tech, spaces: { list: spaces.list, info: spaces.info, open: space }, log });
  return {
    life,
    outbox,
    received,
    directAdds,
    claims,
    oneToOne,
    joins,
    profileNews,
    space,
    ...openListings(deps),
  };
}

/** Opens reads and live windows over the account's own collections. */
function openListings({ parts, stores, opened, clock, log }: OpenServicesDeps) {
  const { tech, techSchema } = opened;
  const { engine, events, store } = tech.space;
  const { readers } = stores;
  const { declaredKind } = techSchema;
  const openSpacesListing = () => {
    const rows = createSpacesListing({ tech, store: stores.account, clock });
    const queries = createRecordQueries({ ...rows, schema: techSchema, log });
    return { rows, queries, live: createLiveQueries({ ...rows, log, declaredKind }) };
  };
  let listed: ReturnType<typeof openSpacesListing> | undefined;
  parts.defer(() => {
    listed?.live.close();
    listed?.rows.close();
  });
  const techLive = parts.adopt(
    createLiveQueries({ engine, events, tables: store, readers, log, declaredKind }),
    closePart,
  );
  return {
    techLive,
    spacesListing: () => (listed ??= openSpacesListing()),
    techQueries: createRecordQueries({ engine, tables: store, schema: techSchema, readers, log }),
  };
}

function servicesOf(
  space: Space,
  { stores, opened, bus, sync, files, clock, log }: OpenServicesDeps,
  messages: ReturnType<typeof createInvitationMessages>,
): SpaceServices {
  const { spaces } = opened;
  return createSpaceServices({
    space,
    schema: stores.schemaOf(space.id),
    account: opened.account,
    secrets: opened.secrets,
    changeAcl: async (build) => {
      const made = await sync.changeAcl(space.replica, build);
      // A caller that reads the row after the answer must see the state that the answer reported.
      await spaces.alignRow(space);
      return made;
    },
    announce: (identities) => announceIn(space, spaces, messages, identities),
    refuse: (identity, requestId) => messages.answered(identity as AccountId, space.id, requestId, "refused"),
    profile: () => opened.tech.profile(),
    clock,
    log,
    readers: stores.readers,
    startLongWork: bus.startLongWork,
    frontiers: opened.frontiers,
    accountValues: opened.accountValues,
    historyMemory: stores.historyMemory,
    contents: files.contents,
    fileContents: files.open(space),
    convergence: {
      waitConverged: () => sync.waitConverged(space.id),
      isSynced: (objectId) => sync.isObjectSynced(space.replica, objectId),
    },
  });
}

/**
 * Notifies the accounts that this device let in; of `asked` it notifies those that others have to let in, who notify them again.
 */
async function announceIn(
  space: Space,
  spaces: OpenAccount["spaces"],
  { added }: ReturnType<typeof createInvitationMessages>,
  asked: readonly string[] = [],
): Promise<void> {
  const notify = (identities: readonly string[]) => added(space, spaces.info(space.id).name, identities);
  await space.aclService.notifyAdmitted(notify);
  const waiting = asked.filter((identity) => space.acl.permission(parseAccountId(identity)!) === "none");
  if (waiting.length > 0) await notify(waiting);
}

/** Runs a first round, which finds the transports over which a space's ACL log can be changed; it takes REACH_MS at most. */
async function firstRound(sync: SyncService, spaceId: SpaceId): Promise<void> {
  sync.roundSoon(spaceId);
  const deadline = performance.now() + REACH_MS;
  while (!sync.book.of(spaceId).roundEnded && performance.now() < deadline) await Bun.sleep(REACH_STEP_MS);
}
