import { deleteSpace, leaveSpace } from "../../acl/compose/actions.ts";
import type { AclBuild } from "../../acl/compose/compose.ts";
import { pendingRequestOf } from "../../acl/reducer/state.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { PROJECTION_VERSION } from "../../change/space-engine.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { DerivedSpaceItem, SpaceInfo } from "../../protocol/space.ts";
import { genesisOfRoot } from "../../space/genesis.ts";
import { createdSpaceGenesis, derivedSpaceGenesis, type Space, type SpaceGenesis } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import { type SpaceMetadata, writeSpaceMetadata } from "../../space/space-index.ts";
import type { AccountStore } from "../../store/account-store.ts";
import type { AclSecrets } from "../own-space/acl-secrets.ts";
import { spaceStatusOf } from "../own-space/space-status.ts";
import { SPACES_RULES } from "../own-space/tech-datasets.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import { DERIVED_SPACES, type SpaceGeneses } from "../rows/space-geneses.ts";
import { JOIN_ASKED } from "../rows/space-notes.ts";
import { membershipBegan } from "./former-membership.ts";
import type { SpaceCreation } from "./space-creation.ts";
import { endedFields, endingOf, type SpaceEnding } from "./space-ending.ts";
import type { Farewells } from "./space-farewells.ts";
import type { SpaceRegistry } from "./space-registry.ts";

interface SpaceLifeDeps {
  account: Account;
  clock: Clock;
  log: Log;
  store: AccountStore;
  tech: TechSpace;
  spaces: SpaceRegistry;
  creation: SpaceCreation;
  geneses: SpaceGeneses;
  farewells: Farewells;
  events: SpaceEvents;
  /** Moves a space's ACL the way the moment allows. */
  changeAcl(space: Space, build: AclBuild): Promise<unknown>;
  secrets: Pick<AclSecrets, "tokenOf" | "keepFormer" | "joinedAgainMs">;
}

/** The life of the account's spaces, from their making to their end (SPACE-2). */
export type SpaceLife = ReturnType<typeof createSpaceLife>;

export function createSpaceLife(deps: SpaceLifeDeps) {
  const { account, tech, store, spaces, secrets, creation, farewells, events, log } = deps;
  /** Spaces that this device is ending: a change of their ACL log alone must not close them in the middle of that. */
  const acting = new Set<SpaceId>();

  events.on("opened", follow);
  events.on("aclChanged", (space) => {
    if (space.id !== tech.space.id) follow(space);
  });
  tech.space.events.on("committed", ({ touched }) => {
    for (const { dataset, recordId, before, doc } of touched)
      if (dataset === SPACES_RULES.name && doc) followRow(recordId as SpaceId, before, doc);
  });

  /** Brings the row in line with the space's ACL log, and ends the space when the log does. */
  function follow(space: Space): void {
    align(space).catch((err: unknown) => {
      log.error("following a space's rights failed", { err, spaceId: space.id });
    });
  }

  async function align(space: Space): Promise<void> {
    await spaces.alignRow(space);
    if (farewells.has(space.id)) await sayFarewell(space);
    else if (!acting.has(space.id)) await endByAcl(space);
  }

  /** Removed, left on another device, not shared any more, or deleted by its owner. */
  async function endByAcl(space: Space): Promise<void> {
    const row = tech.spaceRow(space.id);
    const ending = row && spaceStatusOf(row) === "active" ? endingOf(space) : undefined;
    if (!ending) return;
    const token = secrets.tokenOf(space.id);
    const isGuest = token?.kind === "guest";
    const began = membershipBegan(space);
    if (!isGuest) await secrets.keepFormer(space.id, began?.id);
    // An end from before this account joined again, which the log that it was found with did not know: the join goes on.
    const isOld = Math.max(ending.atMs, began?.time ?? 0) <= secrets.joinedAgainMs(space.id);
    if (isOld && token?.kind === "member" && (ending.how === "left" || ending.how === "removed")) {
      await space.engine.write((tx) => tx.dropNote(JOIN_ASKED));
      return void (await tech.moveSpace(space.id, "joinReopened"));
    }
    const move = ending.how !== "deleted" && isGuest ? "guestRevoked" : "ended";
    const final = ending.how === "deleted" ? { final: true } : {};
    await tech.moveSpace(space.id, move, { ...final, ...endedFields(ending) });
  }

  /** What the row says of an end that this account brings about now. */
  const endedHere = (how: SpaceEnding["how"]): JsonObject =>
    endedFields({ how, by: account.id, atMs: deps.clock.nowMs() });

  /** A space that another device ended ends here too. */
  function followRow(spaceId: SpaceId, before: string | null, doc: string): void {
    if (isOverIn(doc)) {
      events.emit("over", spaceId);
      followEnd(spaceId);
    } else if (before && isOverIn(before))
      takeBackFarewell(spaceId).catch((err: unknown) => log.error("a farewell was not taken back", { err, spaceId }));
  }

  /** Where this device ends a space itself, that goes on, and comes here again if it fails. */
  function followEnd(spaceId: SpaceId): void {
    if (farewells.has(spaceId) || acting.has(spaceId) || !spaces.hasFile(spaceId)) return;
    endAsElsewhere(spaceId).catch((err: unknown) => log.error("ending a space failed", { err, spaceId }));
  }

  /**
   * The space is joined again, by whichever device: nobody is to hear any more that this account left. As far as is known here
   * nobody has, where it is a member still: then that membership goes on.
   */
  async function takeBackFarewell(spaceId: SpaceId): Promise<void> {
    farewells.drop(spaceId);
    await spaces.whenRemoved(spaceId);
    if (!spaces.isHere(spaceId)) return;
    await spaces.use(spaceId, async (space) => {
      await space.aclService.withdrawLeave();
      if (space.role() !== "none") await secrets.keepFormer(spaceId, undefined);
    });
  }

  /** A device that does not hold the space cannot take back the request to join it; the device that holds it does. */
  async function endAsElsewhere(spaceId: SpaceId): Promise<void> {
    const known = spaces.isOpen(spaceId) ? await spaces.openHeld(spaceId) : undefined;
    const row = tech.spaceRow(spaceId);
    if (!row || spaceStatusOf(row) !== "deleted") return; // it is joined again
    if (!known || !pendingRequestOf(known.acl.state, known.accountKey)) return spaces.remove(spaceId);
    await farewells.begin(spaceId);
    follow(known);
  }

  const sayFarewell = (space: Space): Promise<void> =>
    farewells.goOn(space, deps.changeAcl, () => spaces.remove(space.id));

  /** Ends a space here, and keeps it from being dropped while others have not heard of it. */
  async function endWithFarewell(space: Space, fields: JsonObject = {}): Promise<void> {
    await farewells.begin(space.id);
    await tech.moveSpace(space.id, "ended", fields);
    await sayFarewell(space);
  }

  /** Ends a space by a record of this account in its ACL log. */
  async function endByActing(space: Space, build: AclBuild, fields: JsonObject): Promise<void> {
    acting.add(space.id);
    try {
      const began = membershipBegan(space);
      await deps.changeAcl(space, build);
      await secrets.keepFormer(space.id, began?.id);
      await endWithFarewell(space, fields);
    } finally {
      acting.delete(space.id);
      followEnd(space.id);
    }
  }

  /** Ends a space that this account owns, for everybody. */
  async function endOwn(space: Space): Promise<void> {
    const { members, invites } = space.acl.state;
    const shared = members.size > 1 || invites.size > 0;
    const fields = { final: true, ...endedHere("deleted") };
    if (shared) return endByActing(space, deleteSpace, fields);
    await tech.moveSpace(space.id, "ended", fields);
    await spaces.remove(space.id);
  }

  const begin = async (genesis: SpaceGenesis, metadata: SpaceMetadata, derived: boolean): Promise<SpaceInfo> => {
    await creation.begin(genesis, metadata, derived);
    return spaces.info(genesis.spaceId);
  };

  /** What a space needs that was not closed in order, or that has ended meanwhile. */
  const visit = async (spaceId: SpaceId, status: string): Promise<void> => {
    // If a crash came between the farewell and the row, nobody has been told that the space is over.
    if (status !== "deleted") farewells.drop(spaceId);
    if (farewells.has(spaceId)) await spaces.openHeld(spaceId);
    else if (status === "deleted") await spaces.remove(spaceId);
    else if (status === "active" && !store.isClean(spaceId, PROJECTION_VERSION)) {
      const space = await spaces.openHeld(spaceId);
      await space.engine.rebuildProjection("stale");
      await space.engine.tearDownDeleted();
    }
  };

  /** Leaves a space that this account does not own. Durable when it resolves; others are told once they are reached. */
  const leave = async (spaceId: string): Promise<void> =>
    endByActing(await spaces.open(spaceId), leaveSpace, endedHere("left"));

  return {
    create: (metadata: SpaceMetadata): Promise<SpaceInfo> =>
      begin(createdSpaceGenesis(account, deps.clock), metadata, false),

    derived(): DerivedSpaceItem[] {
      return DERIVED_SPACES.map((name) => {
        const { spaceId } = derivedSpaceGenesis(account, name);
        const row = tech.spaceRow(spaceId);
        const status = row && spaceStatusOf(row);
        return { name, spaceId, created: status === "active", ...(status ? { status } : {}) };
      });
    },

    /** The derived space of a name, made on first use. */
    async ensureDerived(name: string): Promise<SpaceInfo> {
      if (!DERIVED_SPACES.some((known) => known === name)) throw svcError("space.derived_unknown", { name });
      const genesis = derivedSpaceGenesis(account, name);
      const row = tech.spaceRow(genesis.spaceId);
      if (row && spaceStatusOf(row) === "deleted") throw svcError("space.deleted", { spaceId: genesis.spaceId });
      if (row?.["spaceIndexObjectId"]) return spaces.info(genesis.spaceId);
      return begin(genesis, { name: name[0]!.toUpperCase() + name.slice(1) }, true);
    },

    /** Changes what the members share about a space. The row here changes at once, others when they sync. */
    async patch(spaceId: string, metadata: SpaceMetadata): Promise<void> {
      const space = requireWriter(await spaces.open(spaceId));
      await space.engine.write((tx) => writeSpaceMetadata(tx, metadata));
    },

    /** Ends a space: for everybody if this account owns it, else for this account. Durable before anything is dropped. */
    async delete(spaceId: string): Promise<void> {
      if (deps.geneses.derived(spaceId)) throw svcError("space.derived_undeletable", { spaceId });
      const row = spaces.rowOf(spaceId);
      const id = spaceId as SpaceId;
      if (!tech.spaceRow(id)) return store.dropPendingSpace(spaceId);
      if (spaceStatusOf(row) === "deleted") throw svcError("space.deleted", { spaceId });
      const held = spaces.hasFile(id) ? await spaces.openHeld(id) : undefined;
      if (held && spaceStatusOf(row) === "active" && held.header.kind === "created") {
        if (held.role() === "owner") return endOwn(held);
        if (held.role() !== "none" && held.role() !== "guest") return leave(spaceId);
      }
      const own = held ? held.role() === "owner" : row["author"] === account.id;
      const ended = own ? { final: true, ...endedHere("deleted") } : endedHere("left");
      await tech.moveSpace(id, "ended", ended);
      await spaces.remove(id);
    },
    leave,
    takeBackFarewell,
    /** The same as whenever a space's ACL log has changed; resolves when its row says what the log says. */
    align,

    /** Takes in a space's ACL log that somebody found, from its root on. Undefined when it is not that space's. */
    async begin(spaceId: SpaceId, acl: readonly Uint8Array[]): Promise<Space | undefined> {
      const genesis = acl[0] && genesisOfRoot(acl[0]);
      return genesis?.spaceId === spaceId ? spaces.begin(spaceId, genesis, acl) : undefined;
    },

    /** A space that this account is a member of becomes active. */
    async activate(spaceId: SpaceId): Promise<void> {
      farewells.drop(spaceId);
      const space = await spaces.openHeld(spaceId);
      const author = space.header.kind === "onetoone" ? {} : { author: accountIdOf(space.header.author) };
      if (await tech.moveSpace(spaceId, "cameIn", author)) await spaces.alignRow(space);
    },

    /** A join came to nothing, or was given up: the space may be joined again. `known`: others need not be notified. */
    async giveUp(spaceId: SpaceId, known: boolean): Promise<void> {
      if (!known && spaces.hasFile(spaceId)) return endWithFarewell(await spaces.openHeld(spaceId));
      await tech.moveSpace(spaceId, "ended");
      await spaces.remove(spaceId);
    },

    /** Finishes what a crash interrupted, then visits the spaces that were not closed in order. Run once, at boot. */
    async bootPass(stopped: () => boolean): Promise<void> {
      await creation.resume(stopped);
      for (const info of spaces.list("all")) {
        if (stopped()) return;
        const spaceId = info.id as SpaceId;
        // A space that cannot be opened holds up neither the others nor what works in the background.
        await visit(spaceId, info.status).catch((err: unknown) =>
          log.error("a space that was not closed in order could not be visited", { err, spaceId }),
        );
      }
    },

    /** Tries again to make the spaces that boot could not finish. */
    retryCreation: creation.retry,
    unfinishedSpaces: creation.unfinished,

    /** Drops the content of objects that were deleted long ago, a space after the other. */
    async purgePass(stopped: () => boolean): Promise<void> {
      for (const { id, status } of spaces.list("all")) {
        if (stopped()) return;
        const spaceId = id as SpaceId;
        if (status !== "active" || !spaces.isHeld(id)) continue;
        await spaces
          .use(spaceId, (space) => space.engine.purgeDeleted(stopped))
          .catch((err: unknown) => log.error("the content of deleted objects could not be dropped", { err, spaceId }));
      }
    },
  };
}

function isOverIn(row: string): boolean {
  return spaceStatusOf(JSON.parse(row) as JsonObject) === "deleted";
}

function requireWriter(space: Space): Space {
  const role = space.role();
  if (role !== "owner" && role !== "admin" && role !== "writer")
    throw svcError("space.read_only", { spaceId: space.id, role });
  return space;
}
