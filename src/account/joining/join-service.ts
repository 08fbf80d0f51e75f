import { joinByInvite } from "../../acl/compose/actions.ts";
import type { AclBuild, ComposeOptions } from "../../acl/compose/compose.ts";
import type { MemberMetadata } from "../../acl/record/epoch.ts";
import { decodeInviteToken, type InviteToken } from "../../acl/record/invite-token.ts";
import { SPACE_TYPE } from "../../acl/record/space-header.ts";
import { pendingRequestOf } from "../../acl/reducer/state.ts";
import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import { createKeyedSemaphore } from "../../base/keyed-semaphore.ts";
import type { Log } from "../../base/log.ts";
import { sha256 } from "../../crypto/hash.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { refusedAs, SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import type { SpacePlace } from "../../space/port/places.ts";
import type { Space } from "../../space/space.ts";
import { isMemberAnew } from "../life/former-membership.ts";
import type { Farewells } from "../life/space-farewells.ts";
import type { SpaceLife } from "../life/space-life.ts";
import type { SpaceRegistry } from "../life/space-registry.ts";
import { type AclSecrets, placeOfToken } from "../own-space/acl-secrets.ts";
import { ACL_SECRETS_DATASET } from "../own-space/private-datasets.ts";
import { type SpaceStatus, spaceStatusOf } from "../own-space/space-status.ts";
import { SPACES_RULES } from "../own-space/tech-datasets.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import { spaceInfoOf } from "../rows/space-info.ts";
import { JOIN_ASKED } from "../rows/space-notes.ts";
import { createDelays } from "./delays.ts";
import type { RequestAnswer } from "./join-desk.ts";
import type { createJoinRequests } from "./join-requests.ts";
import { createSpaceSeeker } from "./space-seeker.ts";
import { createWaiters } from "./waiters.ts";

/** How long a token waits that no log here knows, until a newer log is asked for. */
const RECHECK_MS = 2_000;
/** How long joining waits for the space's ACL log, which shows a revoked invite at once. */
const ACL_LOG_WAIT_MS = 5_000;

interface JoinServiceDeps {
  tech: TechSpace;
  spaces: SpaceRegistry;
  life: Pick<SpaceLife, "begin" | "activate" | "giveUp" | "align" | "takeBackFarewell">;
  farewells: Farewells;
  secrets: AclSecrets;
  clock: Clock;
  log: Log;
  changeAcl(space: Space, build: AclBuild, options: ComposeOptions): Promise<unknown>;
  /** The ACL log of a space that is not held here, if anybody who is reached has it. */
  findAclLog(place: SpacePlace): Promise<Uint8Array[] | undefined>;
  requests: ReturnType<typeof createJoinRequests>;
  /**
   * Whether accounts that take requests may be reached although none of their devices is met; then the answer is waited for
   * a moment.
   */
  mayAnswer: boolean;
  /** Rounds with everybody who is reached, of a space that is here. */
  round(spaceId: SpaceId): Promise<void>;
  /** Makes known over which transports a space's log can be changed; takes a moment at most. */
  reach(spaceId: SpaceId): Promise<void>;
  /** What this account says of itself where it asks to join. */
  profile(): MemberMetadata | undefined;
}

/** Spaces that this account asks to join, from the token to the first content (ACL-17). */
export type JoinService = ReturnType<typeof createJoinService>;

export function createJoinService(deps: JoinServiceDeps) {
  const { tech, spaces, life, farewells, secrets, requests, log } = deps;
  let stopped = false;

  const statusOf = (spaceId: SpaceId): SpaceStatus | undefined => {
    const row = tech.spaceRow(spaceId);
    return row && spaceStatusOf(row);
  };
  const isJoining = (spaceId: SpaceId): boolean => statusOf(spaceId) === "joining";

  /** Whether a space should be here and nothing of it is: the account is joining it, or accepted to have been added. */
  const isAwaited = (spaceId: SpaceId): boolean => {
    if (spaces.isHere(spaceId)) return false;
    const status = statusOf(spaceId);
    return status === "joining" || (status === "active" && secrets.placeOf(spaceId) !== undefined);
  };

  const isIn = (space: Space): boolean => isMemberAnew(space, secrets, deps.clock);

  /** One step after the other, each taken from what the log says then. */
  const advance = (spaceId: SpaceId): Promise<void> => serially(spaceId, () => step(spaceId));

  const later = createDelays<SpaceId>(RECHECK_MS, (spaceId) => resume(spaceId));
  /** Beginning, moving and ending a join of a space never overlap. */
  const steps = createKeyedSemaphore<SpaceId>();
  const serially = async (spaceId: SpaceId, work: () => Promise<void>): Promise<void> => {
    try {
      await steps.run(spaceId, async () => {
        if (!stopped) await work();
      });
    } catch (error) {
      if (!stopped) log.warn("joining a space did not go on", { err: error, spaceId });
      throw error;
    }
  };

  /** Calls to join: woken when a look finds nothing or has ended, and at an answer. */
  const callers = createWaiters<SpaceId>();
  const seeker = createSpaceSeeker({
    isAwaited,
    placeOf: (spaceId) => secrets.placeOf(spaceId),
    ask: requests.ask,
    findAclLog: deps.findAclLog,
    async begin(spaceId, records) {
      if (!(await life.begin(spaceId, records))) return false;
      if (!isJoining(spaceId)) await life.activate(spaceId);
      return true;
    },
    missed(spaceId, place) {
      if (place.transportSecret || !deps.mayAnswer) callers.wake(spaceId);
    },
    async ended(spaceId) {
      try {
        if (isJoining(spaceId)) await advance(spaceId);
      } finally {
        callers.wake(spaceId);
      }
    },
    log,
  });

  /** Throws `invite.invalid` when the token is not live any more; the join has ended then. */
  const step = async (spaceId: SpaceId): Promise<void> => {
    if (!isJoining(spaceId) || !spaces.isHere(spaceId)) return;
    const space = await spaces.openHeld(spaceId);
    if (isIn(space)) return life.activate(spaceId);
    const token = secrets.tokenOf(spaceId);
    const { state } = space.acl;
    if (state.deletedAt !== undefined) return refuse(spaceId);
    if (token && space.role() !== "none") return recheck(space, token);
    if (!token || (pendingRequestOf(state, space.accountKey) && !letsIn(space, token))) return;
    const asked = space.engine.note(JOIN_ASKED);
    // The request got its position in the log and waits no more: it was declined, or taken back.
    if (asked && (state.sequenced.has(bytesToHex(asked)) || space.acl.at(asked))) return end(spaceId);
    if (!isLive(space, token)) return recheck(space, token);
    if (space.acl.pending.list().some(({ pending: { author } }) => equalBytes(author, space.accountKey))) return;
    await ask(space, token);
  };

  /**
   * A token that the ACL log here never heard of is newer than that log. If it was given to a member, the member may have
   * been removed, and this device may not know that yet.
   */
  const meetNews = async (spaceId: SpaceId, token: InviteToken): Promise<void> => {
    if (!spaces.isHere(spaceId)) return;
    const space = await spaces.openHeld(spaceId);
    if (knowsToken(space, token)) return;
    await Promise.race([takeNewest(space, token), Bun.sleep(ACL_LOG_WAIT_MS)]);
    if (!space.engine.closing()) await life.align(space);
  };

  /** The row says joining, and all devices get the token. Throws `space.deleted` for a space that ended for ever. */
  const begin = async (spaceId: SpaceId, inviteToken: string, hint: MemberMetadata | undefined): Promise<void> => {
    const row = tech.spaceRow(spaceId);
    const status = statusOf(spaceId);
    if (row?.["final"] === true) throw svcError("space.deleted", { spaceId });
    if (status === "active") return;
    if (status === "guest_revoked") {
      const space = await spaces.openHeld(spaceId);
      if (isSpent(space, decodeInviteToken(inviteToken))) throw spent();
      // A copy that was read by a guest key belongs to another account.
      await life.giveUp(spaceId, true);
    }
    const asked = requests.make(decodeInviteToken(inviteToken), hint ?? deps.profile());
    const againMs = status === "deleted" ? deps.clock.nowMs() : undefined;
    await secrets.keepToken(spaceId, { token: inviteToken, hint, asked, againMs });
    if (status === "deleted") await life.takeBackFarewell(spaceId);
    else await spaces.whenRemoved(spaceId);
    if (spaces.isHere(spaceId)) {
      const space = await spaces.openHeld(spaceId);
      await space.engine.write((tx) => tx.dropNote(JOIN_ASKED));
    }
    if (status === "joining") return;
    const spaceType = row?.["spaceType"] ? {} : { spaceType: SPACE_TYPE };
    await tech.moveSpace(spaceId, "joinBegan", spaceType, { ownRole: "none" });
  };

  /** Takes in the newest ACL log that anybody who is reached has; the token says where to look. */
  const takeNewest = async (space: Space, token: InviteToken): Promise<void> => {
    // An account that may only ask learns of the space from the answers to its request, if at all.
    if (token.kind === "request") await deps.round(space.id);
    const records = await deps.findAclLog(placeOfToken(token));
    // Each record is taken in by itself: anybody who has the token can have put something between them.
    if (records && !space.engine.closing()) await space.aclService.takeEach(records);
  };

  /** The ACL log here does not know the token, or that this account has ended a membership: it may be older than that. */
  const recheck = async (space: Space, token: InviteToken): Promise<void> => {
    await takeNewest(space, token);
    if (stopped || !isJoining(space.id)) return;
    if (isIn(space)) return life.activate(space.id);
    // A peer's log may be older than the token, too, or than the end of a membership before.
    if (space.role() !== "none" || !knowsToken(space, token)) return later.set(space.id);
    return isLive(space, token) ? ask(space, token) : refuse(space.id);
  };

  const ask = async (space: Space, token: InviteToken): Promise<void> => {
    if (token.kind === "request") return askByPending(space);
    const metadata = secrets.hintOf(space.id) ?? deps.profile();
    let asked: { id: Uint8Array } | undefined;
    try {
      await deps.reach(space.id);
      const build: AclBuild = (context) => joinByInvite(context, token.seed, metadata);
      // An account that comes by an open invite gives itself the key that is sealed to the invite.
      asked = (await deps.changeAcl(space, build, { inviteSeed: token.seed })) as typeof asked;
    } catch (error) {
      if (error instanceof SvcError && error.code === "invite.invalid") return refuse(space.id);
      throw error;
    }
    if (!asked) return;
    const { id } = asked;
    await space.engine.write((tx) => tx.putNote(JOIN_ASKED, id));
    if (space.role() !== "none") await life.activate(space.id);
  };

  /** The same request that goes to the accounts whom the token names waits here for any member who is met. */
  const askByPending = async (space: Space): Promise<void> => {
    const pending = secrets.askedOf(space.id);
    if (!pending) return;
    await space.aclService.takePending([pending]);
    await space.engine.write((tx) => tx.putNote(JOIN_ASKED, sha256(pending)));
    await requests.ask(space.id);
    await deps.round(space.id);
  };

  const end = async (spaceId: SpaceId): Promise<void> => {
    await life.giveUp(spaceId, true);
    await secrets.dropToken(spaceId);
  };

  const refuse = async (spaceId: SpaceId): Promise<never> => {
    await end(spaceId);
    throw spent();
  };

  /** Goes on with every join that waits; called when rows, tokens or logs have changed. */
  const resume = (spaceId: SpaceId): void => {
    if (stopped) return;
    seeker.heard(spaceId);
    if (isAwaited(spaceId)) void seeker.seek(spaceId);
    else if (isJoining(spaceId)) advance(spaceId).catch(() => undefined); // logged where it happened
  };

  const unfollow = tech.space.events.on("committed", (batch) => {
    for (const { dataset, recordId } of batch.touched) {
      // What is under way looks with an older token, or for an older request.
      if (dataset === ACL_SECRETS_DATASET) seeker.letGo(recordId as SpaceId);
      if (dataset === SPACES_RULES.name || dataset === ACL_SECRETS_DATASET) resume(recordId as SpaceId);
    }
  });

  return {
    name: "joins",
    /**
     * Joins by an invite or guest token: 202 with the row, which says `joining` until the space is here. Throws
     * `invite.invalid` for what is no token and, as far as it can be told within a moment, one that is not live any more.
     */
    async join(inviteToken: string, hint: MemberMetadata | undefined): Promise<SpaceInfo> {
      const token = decodeInviteToken(inviteToken);
      const { spaceId } = token;
      if (statusOf(spaceId) === "active") await meetNews(spaceId, token);
      if (statusOf(spaceId) !== "active") {
        const woken = callers.whenWoken(spaceId);
        await serially(spaceId, () => begin(spaceId, inviteToken, hint));
        const found = spaces.isHere(spaceId) ? advance(spaceId) : seeker.seek(spaceId);
        await Promise.race([found, woken, Bun.sleep(ACL_LOG_WAIT_MS)]);
        if (statusOf(spaceId) === "deleted") throw spent();
      }
      return spaceInfoOf(spaces.rowOf(spaceId));
    },

    /** Takes back a request to join. Throws the space resolution errors, and `space.not_invite_pending` unless one waits. */
    async cancel(spaceId: SpaceId): Promise<void> {
      const status = spaceStatusOf(spaces.rowOf(spaceId));
      if (status === "deleted") throw svcError("space.deleted", { spaceId });
      if (status !== "joining")
        throw refusedAs("space.not_invite_pending", { spaceId, status }, refusal("space.not_joining"));
      await serially(spaceId, async () => {
        if (!isJoining(spaceId)) return; // let in, or refused, meanwhile
        await requests.withdraw(spaceId);
        await life.giveUp(spaceId, secrets.tokenOf(spaceId)?.kind === "guest");
        if (!farewells.has(spaceId)) await secrets.dropToken(spaceId);
      });
    },

    /** An answer to a request of this account. Only the accounts that the token names are believed. */
    async answered(spaceId: SpaceId, from: Uint8Array, pendingId: Uint8Array, answer: RequestAnswer): Promise<void> {
      if (!isJoining(spaceId) || !requests.isBelieved(spaceId, from, pendingId)) return;
      if (answer === "refused") await serially(spaceId, async () => void (isJoining(spaceId) && (await end(spaceId))));
      callers.wake(spaceId);
    },

    /** Goes on with what an earlier run began. */
    start(): void {
      for (const { id, status } of spaces.list("all"))
        if (status === "joining" || status === "active") resume(id as SpaceId);
    },
    /** A copy that has ended is gone: a space that is joined again is looked for anew. */
    ended: resume,
    /** A space's log has changed. */
    rightsChanged: (space: Space): void => resume(space.id),
    async stop(): Promise<void> {
      stopped = true;
      unfollow();
      seeker.close();
      later.clear();
      await steps.idle();
    },
  };
}

const spent = () => refusedAs("invite.invalid", {}, refusal("act.invite_gone"));

/** The log knew the token, and has ended it. */
const isSpent = ({ acl: { state } }: Space, { seed }: InviteToken): boolean => {
  const key = publicKeyOfSeed(seed);
  const isGuestKey = state.guest !== undefined && equalBytes(state.guest.key, key);
  return state.usedKeys.has(bytesToHex(key)) && !state.invites.has(bytesToHex(key)) && !isGuestKey;
};

const knowsToken = ({ acl: { state } }: Space, { seed }: InviteToken): boolean =>
  state.usedKeys.has(bytesToHex(publicKeyOfSeed(seed)));

/** A live open invite is worth more than the request that waits. */
const letsIn = ({ acl: { state } }: Space, { seed }: InviteToken): boolean =>
  (state.invites.get(bytesToHex(publicKeyOfSeed(seed)))?.permission ?? "none") !== "none";

const isLive = ({ acl: { state } }: Space, { kind, seed }: InviteToken): boolean =>
  kind === "member" && state.invites.has(bytesToHex(publicKeyOfSeed(seed)));
