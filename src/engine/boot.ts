import { hostname } from "node:os";
import { createAccountValues } from "../account/account-values.ts";
import { createAclSecrets } from "../account/acl-secrets.ts";
import { createDirectAddService } from "../account/direct-add-service.ts";
import { createJoinService } from "../account/join-service.ts";
import { createOneToOneService } from "../account/one-to-one-service.ts";
import { createReadFrontiers } from "../account/read-frontiers.ts";
import { spacePaths } from "../account/space-files.ts";
import { createSpaceService } from "../account/space-service.ts";
import { TECH_SPACE_NAME } from "../account/tech-datasets.ts";
import { createTechSpace, techIndex } from "../account/tech-space.ts";
import type { AclBuild } from "../acl/acl-service.ts";
import type { ComposeOptions } from "../acl/compose.ts";
import type { SpaceId } from "../base/ids.ts";
import { createServices } from "../base/service.ts";
import { PRODUCT_VERSION } from "../base/version.ts";
import { createHistoryMemory } from "../change/history/memory.ts";
import { createChangeChecker } from "../change/intake/change-checker.ts";
import type { RulesRegistry } from "../change/ports.ts";
import type { Account } from "../crypto/account.ts";
import { createSigner } from "../crypto/sign.ts";
import { createDeviceService } from "../domain/device/device-service.ts";
import { createEventHub } from "../domain/event/event-hub.ts";
import { createIdentityDirectory } from "../domain/identity/identity-directory.ts";
import { createLiveQueries } from "../domain/live/live-queries.ts";
import { createLongWorks } from "../domain/process/long-work.ts";
import { createProcessRegistry } from "../domain/process/process-registry.ts";
import { createRecordQueries } from "../domain/record/record-query.ts";
import { TECH_DATASETS } from "../domain/type/built-in-schemas.ts";
import type { WritableDataset } from "../domain/type/port.ts";
import { createSchema, type Schema } from "../domain/type/schema.ts";
import { createReaderPool } from "../query/reader-pool.ts";
import { derivedSpaceGenesis, openSpace, type Space, writeGenesis } from "../space/space.ts";
import { createSpaceEvents } from "../space/space-events.ts";
import { openAccountStore } from "../store/account-store.ts";
import { createWalCheckpointer } from "../store/wal-checkpointer.ts";
import { createEventRelay } from "../sync/event-relay.ts";
import { createInboxMessages } from "../sync/inbox/inbox-messages.ts";
import { createSyncService } from "../sync/sync-service.ts";
import { createAccountFiles } from "./account-files.ts";
import type { BootEngine } from "./boot-engine.ts";
import { spaceDatasets, techDatasets } from "./built-in-datasets.ts";
import { crashPoint } from "./crash-point.ts";
import type { Engine } from "./engine.ts";
import { createInvitations } from "./invitations.ts";
import { createLinkKeys } from "./link-keys.ts";
import { createProfileNews } from "./profile-news.ts";
import { type Replication, startReplication } from "./replication.ts";
import { createRightsFollower } from "./rights-follower.ts";
import { createSpaceServices, type SpaceServices } from "./space-services.ts";
import { createSpacesListing } from "./spaces-listing.ts";
import { probeVectorSupport } from "./vector-support.ts";

/** How often processes that nobody reports on any more are forgotten. */
const PURGE_EVERY_MS = 24 * 60 * 60 * 1000;
const PROCESS_SWEEP_MS = 5_000;
/** How long a first round of a space that was just found is waited for. */
const REACH_MS = 3_000;
const REACH_STEP_MS = 20;

/** Opens an account: its store, its tech space, then everything else on the boot pass behind the listener. */
export const bootEngine: BootEngine = async (options): Promise<Engine> => {
  const { accountDir, wallet, config, log, clock, brandNew = false } = options;
  const account: Account = {
    id: wallet.accountId,
    peerId: wallet.peerId,
    seed: wallet.accountSeed,
    signer: createSigner(wallet.accountSeed),
  };
  const paths = spacePaths(accountDir);
  const store = openAccountStore(paths.account);
  const readers = createReaderPool();
  const checker = createChangeChecker((error) =>
    log.warn("a thread that verifies changes was lost; they are verified without it for a while", { err: error }),
  );
  const checkpointer = createWalCheckpointer();
  const historyMemory = createHistoryMemory();
  const onFailure = (error: unknown) => log.error("a commit failed", { err: error });
  const walCopying = {
    checkpointer,
    onFault: (error: unknown) => log.warn("a checkpoint failed, it is tried again", { err: error }),
  };

  const spaceEvents = createSpaceEvents();
  /** Workers behind the requests; they start at the end of the boot pass. */
  const workers = createServices(log);

  const openWith = (
    spaceId: SpaceId,
    builtIns: ReadonlyMap<string, WritableDataset>,
    { as = account, keepsHistory = true }: { as?: Account; keepsHistory?: boolean } = {},
  ): { space: Space; schema: Schema } => {
    let schema: Schema | undefined;
    const space = openSpace(paths.space(spaceId), spaceId, {
      account: as,
      clock,
      keepsHistory,
      checker,
      walCopying,
      onFailure,
      registry: (engine): RulesRegistry => {
        schema = createSchema({ engine, builtIns });
        return schema.registry;
      },
    });
    space.engine.onCommit((batch) => spaceEvents.emit("committed", space, batch));
    space.aclService.onMoved(() => spaceEvents.emit("aclChanged", space));
    return { space, schema: schema! };
  };

  try {
    const techSeed = derivedSpaceGenesis(account, TECH_SPACE_NAME);
    writeGenesis(paths.space(techSeed.spaceId), techSeed);
    paths.syncDirectory();
    const { space: techOpened, schema: techSchema } = openWith(techSeed.spaceId, techDatasets(), {
      keepsHistory: false,
    });
    const tech = createTechSpace(techOpened, await techIndex(techOpened));
    const devices = createDeviceService({ tech, peerId: account.peerId, clock, version: PRODUCT_VERSION, hostname });
    if (!(await devices.register()))
      log.warn("this device was pruned: its row stays gone until it has fresh keys from a new init", {
        peerId: account.peerId,
      });

    const identities = createIdentityDirectory({ store, accountId: account.id });
    const frontiers = createReadFrontiers(tech);
    const accountValues = createAccountValues(tech);
    const builtIns = spaceDatasets();
    const secrets = createAclSecrets(tech, account);
    const linkKeys = createLinkKeys(account, (spaceId) => secrets.placeOf(spaceId));
    const changeAcl = (space: Space, build: AclBuild, options?: ComposeOptions) =>
      sync.changeAcl(space, build, options);
    /** Spaces with members besides this account. */
    const sharedSpaces = new Set<SpaceId>();
    const noteMembers = (space: Space): void => {
      const active = [...space.acl.state.members.values()].filter(({ status }) => status === "active");
      if (active.length > 1 || space.header.kind === "onetoone") sharedSpaces.add(space.id);
      else sharedSpaces.delete(space.id);
    };
    /** What is said in a space's room can be read once there is a read key: asked again whenever rights move. */
    const listenIn = (space: Space): void => {
      if (!space.keys.current()) return;
      processes.hear(space.id);
      relay.attach(space); // one that is being made is not held yet, so the relay could not open it
    };
    const files = await createAccountFiles({
      accountDir,
      clock,
      log,
      cacheLimitBytes: config["files.cacheLimit"],
      sweepEveryMs: config["files.gcInterval"],
      activeIds: () => spaces.activeIds(),
      isActive: (spaceId) => spaces.activeIds().includes(spaceId),
      isOver: (spaceId) => spaces.rowOf(spaceId)?.["status"] === "deleted",
      isSettling: () => bootstrapping,
      use: (spaceId, run) => spaces.use(spaceId, ({ fileContents }) => run(fileContents)),
    });
    const spaces = createSpaceService<SpaceServices>({
      account,
      clock,
      log,
      paths,
      store,
      tech,
      crashPoint,
      changeAcl,
      isGuest: (spaceId) => secrets.tokenOf(spaceId)?.kind === "guest",
      open: async (spaceId) => {
        const opened = openWith(spaceId, builtIns, { as: secrets.accountIn(spaceId) });
        sync.attach(opened.space);
        noteMembers(opened.space);
        linkKeys.spaceChanged(opened.space);
        listenIn(opened.space);
        opened.space.aclService.onMoved(() => {
          noteMembers(opened.space);
          linkKeys.spaceChanged(opened.space);
          listenIn(opened.space);
        });
        const services = createSpaceServices({
          ...opened,
          account,
          secrets,
          changeAcl: async (build) => {
            const made = await changeAcl(opened.space, build);
            // Whoever reads the row after the answer sees what the answer was about.
            await spaces.settle(opened.space);
            return made;
          },
          announce: (identities) => invitations.added(opened.space, spaces.info(spaceId).name, identities),
          profile: () => tech.profile(),
          clock,
          log,
          readers,
          startLongWork: (work) => startLongWork(work),
          frontiers,
          accountValues,
          historyMemory,
          contents: files.contents,
          fileContents: files.open(opened.space),
          convergence: {
            waitConverged: () => sync.waitConverged(spaceId),
            isSynced: (objectId) => sync.isObjectSynced(opened.space, objectId),
          },
        });
        spaceEvents.emit("opened", opened.space);
        return {
          ...services,
          busy: () => services.busy() || sync.isBusy(spaceId),
          async close() {
            spaceEvents.emit("closing", opened.space);
            await services.close();
            files.closed(spaceId);
            spaceEvents.emit("closed", spaceId);
          },
        };
      },
    });
    const sync = createSyncService({
      peerId: account.peerId,
      clock,
      log,
      intervalMs: config["sync.interval"],
      showCatchUp: () =>
        startLongWork({ kind: "sync.restore", title: "Getting what other devices have", target: account.id }),
      spaces: {
        tech: techOpened,
        active: () => spaces.activeIds(),
        held: () => spaces.heldIds(),
        isHeld: (spaceId) => spaces.isHeld(spaceId),
        isOnlyHere: (spaceId) => devices.list().devices.length <= 1 && !sharedSpaces.has(spaceId),
        openHeld: async (spaceId) => (await spaces.openHeld(spaceId)).space,
        open: async (spaceId) => (await spaces.open(spaceId)).space,
      },
    });
    sync.attach(techOpened);
    spaces.onKnown((spaceId) => sync.firstRoundSoon(spaceId));
    spaces.onEnded((spaceId) => spaceEvents.emit("ended", spaceId));
    spaceEvents.on("ended", files.ended);
    workers.add(files.sweeper);
    spaces.onEnding((spaceId) => {
      processes.unhear(spaceId);
      relay.detach(spaceId);
      linkKeys.spaceEnded(spaceId);
      sync.forget(spaceId).catch((error: unknown) => log.error("forgetting a space failed", { err: error, spaceId }));
    });
    const joins = createJoinService({
      tech,
      spaces,
      secrets,
      log,
      changeAcl,
      findChain: (place) => sync.findChain(place),
      reach: async (spaceId) => {
        sync.roundSoon(spaceId);
        const deadline = performance.now() + REACH_MS;
        while (!sync.book.of(spaceId).roundEnded && performance.now() < deadline) await Bun.sleep(REACH_STEP_MS);
      },
      profile: () => tech.profile(),
    });
    const rights = createRightsFollower({ identities, changeAcl, isOver: spaces.farewells.has, log });
    spaces.onRights((space) => {
      joins.rightsMoved(space);
      rights.moved(space);
    });
    spaces.onOver((spaceId) => rights.ended(spaceId));
    const profileNews = createProfileNews({ tech, spaces, log });
    const events = createEventHub({
      accountId: account.id,
      clock,
      requireSpace: async (spaceId) => ({
        hasReadKey: (await spaces.open(spaceId)).space.keys.current() !== undefined,
      }),
    });
    const processes = createProcessRegistry({ accountId: account.id, bus: events, clock });
    const startLongWork = createLongWorks({ processes, log });
    const processSweep = setInterval(() => processes.sweep(), PROCESS_SWEEP_MS);

    const techLive = createLiveQueries({
      engine: techOpened.engine,
      readers,
      log,
      declaredKind: techSchema.declaredKind,
    });
    const listing = createSpacesListing({ tech, store, clock });
    const spacesLive = createLiveQueries({ ...listing, log, declaredKind: techSchema.declaredKind });
    const openHeld = async (spaceId: string): Promise<Space | undefined> => {
      if (spaceId === techOpened.id) return techOpened;
      return spaces.isHeld(spaceId) ? (await spaces.openHeld(spaceId as SpaceId)).space : undefined;
    };
    const relay = createEventRelay({
      account,
      peerId: account.peerId,
      tech: techOpened,
      clock,
      log,
      open: openHeld,
      receive: (event) => void events.receive(event),
    });
    events.connect(relay);
    const inboxMessages = createInboxMessages({ account, tech: techOpened, clock, log });
    const directAdds = createDirectAddService({ tech, spaces, secrets });
    const oneToOne = createOneToOneService({
      account,
      tech,
      store,
      spaces,
      clock,
      profile: () => tech.profile(),
      announce: (other) => invitations.oneToOne(other),
    });
    const invitations = createInvitations({ inboxMessages, directAdds, oneToOne, profile: () => tech.profile() });
    /** Other devices or members; an account without a space may be one that is being restored. */
    const mayHaveOthers = (): boolean =>
      !brandNew &&
      (devices.list().devices.length > 1 || identities.list().length > 0 || spaces.list("all").length === 0);
    let replication: Replication | undefined;
    let bootstrapping = true;
    let closing = false;
    // Spaces are seen to when they are opened, too: this is for those that stay open, or closed, for long.
    const purge = setInterval(() => void spaces.purgePass(() => closing), PURGE_EVERY_MS);
    const pass = spaces
      .bootPass(() => closing)
      .then(async () => {
        if (closing) return;
        replication = await startReplication({
          config,
          account,
          deviceSeed: wallet.deviceSeed,
          clock,
          log,
          sync,
          tech: techOpened,
          relay,
          inboxMessages,
          linkKeys,
          mayHaveOthers,
          placeOf: (spaceId) => secrets.placeOf(spaceId),
          inviteSeedOf: (spaceId) => secrets.tokenOf(spaceId)?.seed,
          open: openHeld,
        });
        joins.start();
        await sync.start();
        profileNews.start();
        await workers.startAll();
      })
      .then(() => void (config["index.enabled"] && probeVectorSupport(accountDir, log)))
      .catch((error: unknown) => log.error("the boot pass failed", { err: error }))
      .finally(() => {
        bootstrapping = false;
      });

    return {
      accountId: account.id,
      peerId: account.peerId,
      spaces,
      tech,
      devices,
      identities,
      events,
      joins,
      oneToOne,
      directAdds,
      processes,
      sync,
      fileCache: files.cache,
      techDatasets: TECH_DATASETS,
      techLive,
      spacesLive,
      spacesQueries: createRecordQueries({ ...listing, schema: techSchema, log }),
      techQueries: createRecordQueries({ engine: techOpened.engine, schema: techSchema, readers, log }),
      space: (spaceId) => spaces.open(spaceId),
      changeProfile: profileNews.change,
      bootstrapping: () => bootstrapping,
      async close() {
        closing = true;
        await workers.stopAll();
        clearInterval(processSweep);
        clearInterval(purge);
        processes.close();
        rights.close();
        await profileNews.close();
        await joins.close();
        await inboxMessages.close();
        await sync.close();
        await pass;
        await replication?.close();
        readers.close();
        checker.close();
        techLive.close();
        spacesLive.close();
        listing.close();
        await files.close();
        await spaces.close();
        await techOpened.close();
        checkpointer.close();
        store.close();
      },
    };
  } catch (error) {
    checkpointer.close();
    store.close();
    throw error;
  }
};
