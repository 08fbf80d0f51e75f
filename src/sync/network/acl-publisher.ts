import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { SvcError, svcError } from "../../protocol/errors.ts";
import type { AclBuild, AclMade, ComposeOptions, Replica } from "../../space/replica.ts";
import type { Channel } from "./channel.ts";
import type { SpaceChannel } from "./space-channels.ts";

const ACL_ATTEMPTS = 16;
const READ_MS = 10_000;
const READ_STEP_MS = 20;

interface AclPublisherDeps {
  readonly log: Log;
  channelOf(replica: Replica): SpaceChannel | undefined;
  /** Secret of the invite by which this account joins the space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
}

/** What of the ACL goes to the network, which keeps its order. */
export function createAclPublisher(deps: AclPublisherDeps) {
  /** Reads the ACL log to its tail; that of a space one is no member of yet is all there is to read. */
  const read = async ({ channel, ended }: SpaceChannel): Promise<void> => {
    const deadline = performance.now() + READ_MS;
    while (!channel.state().acl.atTail) {
      if (ended.signal.aborted || performance.now() > deadline) throw svcError("network.unavailable");
      await Bun.sleep(READ_STEP_MS);
    }
  };

  /**
   * Puts the ACL records that the network lacks behind those it has, in the order of the log. Then those of branches
   * that lost: an owner's device that never met them gives them a place, since changes may name them.
   */
  const publish = async (replica: Replica, channel: Channel): Promise<void> => {
    for (let attempt = 0; attempt < ACL_ATTEMPTS; attempt++) {
      const next = replica.acl.unpublished();
      if (!next) return;
      await channel.appendAcl(next);
    }
  };

  const append = async (replica: Replica, build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> => {
    const own = deps.channelOf(replica);
    if (!own) throw svcError("network.unavailable");
    for (let attempt = 0; attempt < ACL_ATTEMPTS; attempt++) {
      await read(own);
      if (replica.role() !== "none") await publish(replica, own.channel);
      const made = replica.acl.draft(build, options);
      if (!made) return undefined;
      if ((await own.channel.appendAcl(made.bytes)).outcome === "conflict") continue;
      if (!replica.acl.isPlaced(made.id)) await replica.acl.take([made.bytes]);
      if (replica.acl.isPlaced(made.id)) return made;
    }
    throw svcError("network.unavailable", undefined, "Others were faster every time; retry");
  };

  return {
    read,
    publish,
    append,
    /**
     * What this account could only propose while the network was away takes effect now, behind the last record that
     * everybody sees. One that somebody else's record made impossible meanwhile is forgotten.
     */
    async publishProposals(replica: Replica): Promise<void> {
      for (const build of await replica.acl.ownProposals()) {
        try {
          const inviteSeed = deps.inviteSeedOf(replica.id);
          await append(replica, build, inviteSeed ? { inviteSeed } : {});
        } catch (error) {
          if (!(error instanceof SvcError) || error.code === "network.unavailable") throw error;
          deps.log.warn("sync: a proposal could not take effect on the network", { err: error, spaceId: replica.id });
        }
      }
    },
  };
}
