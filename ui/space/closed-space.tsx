/** A space that is not open: why, since when, and what the user can do about it. */
import type { SpaceInfo } from "../../src/protocol/space.ts";
import { displayValue } from "../parts/display-value.ts";
import { isMe, personName } from "../parts/people.ts";
import { spaceTitle } from "../parts/space-title.ts";
import { href } from "../state/router.ts";
import { PendingSpace } from "./pending-space.tsx";

export function ClosedSpace({ space }: { space: SpaceInfo }) {
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href("spaces")}>Spaces</a>
      </nav>
      <h1>{spaceTitle(space)}</h1>
      <div class="note note-warning">
        <p>{whyClosed(space)}</p>
      </div>
      <PendingSpace space={space} />
    </>
  );
}

const WAITING: Partial<Record<SpaceInfo["status"], string>> = {
  joining: "You asked to join. Somebody who manages the members has to let you in; then the space opens here.",
  invite_pending: "You were invited. Accept, and the space opens here.",
  invite_declined: "You declined the invite.",
  one_to_one_pending: "Somebody wants to share a space of two with you.",
  one_to_one_declined: "You declined this space of two.",
};

/** One sentence: what the space waits for, or who ended it and when. */
export function whyClosed(space: SpaceInfo): string {
  const { status, ended } = space;
  if (status !== "deleted" && status !== "guest_revoked") return WAITING[status] ?? "The space is not open here.";
  if (!ended) return status === "deleted" ? "The space has ended for you." : "The public key to read was revoked.";
  return `${deedOf(ended)} on ${displayValue(ended.at)}. ${REMEDIES[ended.how]}`;
}

function deedOf({ how, by, name }: NonNullable<SpaceInfo["ended"]>): string {
  const who = isMe(by) ? "You" : name || personName(by);
  switch (how) {
    case "deleted":
      return `${who} deleted the space for everybody`;
    case "unshared":
      return `${who} stopped sharing the space`;
    case "removed":
      return `${who} removed you from the space`;
    case "left":
      return `${who} left the space`;
  }
}

const REMEDIES: Readonly<Record<NonNullable<SpaceInfo["ended"]>["how"], string>> = {
  deleted: "It cannot be had back.",
  unshared: "Its content is no longer here; a new invite would bring it back.",
  removed: "Its content is no longer here; a new invite would bring it back.",
  left: "Its content is no longer here; a new invite would bring it back.",
};
