import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Timers } from "../../base/timers.ts";
import { sha256 } from "../../crypto/hash.ts";
import { refusedAs, SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { Place } from "../../space/port/places.ts";
import type { AclBuild, AclMade, ComposeOptions, Replica } from "../../space/port/replica.ts";
import { placeLink } from "./acl-append.ts";
import { notePlace, placeNote } from "./log-notes.ts";
import type { SpaceChannel } from "./space-channels.ts";

const ACL_ATTEMPTS = 16;
/** Records appended to one place in one go; the next round goes on. */
const APPENDED_AT_ONCE = 10_000;
const READ_MS = 10_000;

interface AclPublisherDeps {
  /** The places of a space, oldest first. */
  placesOf(replica: Replica): Place[];
  readonly timers: Timers;
}

export type AclPublisher = ReturnType<typeof createAclPublisher>;

/** Publishes the ACL on the network, which keeps its order. */
export function createAclPublisher(deps: AclPublisherDeps) {
  /** Reads the ACL log to its tail. For a space that this account is no member of yet, that is all there is to read. */
  const read = async ({ channel, ended }: SpaceChannel): Promise<void> => {
    if (channel.state().acl.atTail) return;
    const late = deps.timers.sleep(READ_MS).then(() => "late" as const);
    const outcome = await Promise.race([channel.readAcl(), late]);
    if (outcome === "late" || ended.signal.aborted) throw svcError("network.unavailable");
  };

  /**
   * Appends to a place the ACL records that it lacks, in the order of the log, and before them the link to the place
   * before. Then it appends the records of branches that lost: changes may name them, and an owner's device that never met
   * them has to give them a position.
   */
  const publish = async (replica: Replica, own: SpaceChannel): Promise<void> => {
    for (let attempt = 0, appended = 0; attempt < ACL_ATTEMPTS && appended < APPENDED_AT_ONCE; ) {
      const places = deps.placesOf(replica);
      const index = places.findIndex(({ keyId }) => keyId === own.keyId);
      const place = places[index];
      if (!place) return;
      const before = placeNote(replica, own.keyId).linked ? undefined : places[index - 1]?.secret;
      const bytes = before ? placeLink(before) : replica.acl.unpublishedAt(place);
      if (!bytes) return;
      const { outcome } = await own.channel.appendAcl(bytes, own.channel.aclSeq());
      if (outcome === "appended") {
        appended++;
        if (own.end) await noteBehindEnd(replica, own, before ? undefined : bytes);
      } else if (own.end) return;
      else attempt++;
    }
  };

  /** What stands behind the end of a place is not delivered, so that it is there is noted when it was put there. */
  const noteBehindEnd = (replica: Replica, { keyId }: SpaceChannel, record: Uint8Array | undefined): Promise<void> =>
    replica.write((write) => {
      if (record) write.recordsPublished([sha256(record)]);
      else notePlace(write, replica, keyId, { linked: true });
    });

  return { read, publish };
}

interface AclAppenderDeps {
  readonly log: Log;
  /** The channel of the present place, read to its tail. */
  toPresent(replica: Replica): Promise<SpaceChannel | undefined>;
  /** Secret of the invite by which this account joins the space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
}

/** Appends this account's records behind the last one that everybody sees. */
export function createAclAppender(deps: AclAppenderDeps) {
  const append = async (replica: Replica, build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> => {
    for (let attempt = 0; attempt < ACL_ATTEMPTS; attempt++) {
      const own = await deps.toPresent(replica);
      if (!own) throw svcError("network.unavailable");
      // In one turn of the loop: what is drafted knows everything up to this record, and stands in this place or nowhere.
      const behind = own.channel.aclSeq();
      const made = replica.acl.draft(build, options);
      if (!made) return undefined;
      if (replica.presentKeyId() !== own.keyId) continue;
      await replica.acl.keepUnnotified(made);
      try {
        if ((await own.channel.appendAcl(made.bytes, behind)).outcome === "conflict") {
          await replica.acl.forgetUnnotified(made);
          continue;
        }
      } catch (error) {
        if (own.ended.signal.aborted && !replica.closing()) continue; // the space went on to another place meanwhile
        throw error;
      }
      if (!replica.acl.hasPosition(made.id)) await replica.acl.take([made.bytes]);
      if (replica.acl.hasPosition(made.id)) return made;
    }
    throw refusedAs("network.unavailable", undefined, refusal("network.others_faster"));
  };

  /** Answers whether a record was made of it. */
  const appendProposal = async (replica: Replica, build: AclBuild): Promise<boolean> => {
    try {
      const inviteSeed = deps.inviteSeedOf(replica.id);
      return (await append(replica, build, inviteSeed ? { inviteSeed } : {})) !== undefined;
    } catch (error) {
      if (!(error instanceof SvcError) || error.code === "network.unavailable") throw error;
      deps.log.warn("sync: a proposal could not take effect on the network", { err: error, spaceId: replica.id });
      return false;
    }
  };

  return {
    append,
    /**
     * What this account could only propose while the network was away takes effect now, behind the last record that
     * everybody sees. A proposal that somebody else's record has made impossible meanwhile is forgotten.
     */
    async publishProposals(replica: Replica): Promise<void> {
      // What waits behind another proposal can go when that has gone.
      for (let more = true; more; ) {
        more = false;
        for (const build of await replica.acl.ownProposals()) if (await appendProposal(replica, build)) more = true;
      }
    },
  };
}
