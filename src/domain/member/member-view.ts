import type { RosterMember } from "../../acl/reducer/roster.ts";
import type { JoinRequest, Member, MemberFrame } from "../../protocol/member.ts";
import { rosterIn } from "../../space/pair-profiles.ts";
import type { Space } from "../../space/space.ts";

/** Returns the roster as callers see it, without the profile keys. */
export function membersOf(space: Space): Member[] {
  return rosterIn(space).map(viewOf);
}

export function viewOf({ identity, permission, status, metadata, requestRecordId }: RosterMember): Member {
  const { name, description, iconCid } = metadata ?? {};
  return {
    identity,
    permission,
    status,
    ...(name ? { name } : {}),
    ...(description ? { description } : {}),
    ...(iconCid ? { iconCid } : {}),
    ...(requestRecordId === undefined ? {} : { requestRecordId }),
  };
}

/** Returns the requests of accounts that ask to join. */
export function requestsIn(members: readonly Member[]): JoinRequest[] {
  return members.flatMap(({ identity, name, description, iconCid, requestRecordId }) =>
    requestRecordId === undefined
      ? []
      : [
          {
            identity,
            ...(name ? { name } : {}),
            ...(description ? { description } : {}),
            ...(iconCid ? { iconCid } : {}),
            requestRecordId,
            recordId: requestRecordId,
          },
        ],
  );
}

/** Compares two rosters: which members are new or came back, which changed, and which are gone. */
export function memberFrames(before: readonly Member[], now: readonly Member[]): MemberFrame[] {
  const left = new Map(before.map((member) => [member.identity, member]));
  const frames: MemberFrame[] = [];
  for (const member of now) {
    const previous = left.get(member.identity) ?? null;
    left.delete(member.identity);
    const wasIn = previous !== null && !isOver(previous);
    if (!previous || (!wasIn && !isOver(member))) frames.push({ kind: "added", member, previous: null });
    else if (!Bun.deepEquals(previous, member))
      frames.push({ kind: wasIn && isOver(member) ? "removed" : "changed", member, previous });
  }
  // A member may have been only in a branch of the log that lost.
  for (const member of left.values()) frames.push({ kind: "removed", member, previous: member });
  return frames;
}

const isOver = ({ status }: Member): boolean => status === "removed" || status === "declined" || status === "canceled";
