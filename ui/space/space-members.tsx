/** The members of a space, live; requests to join are answered and roles are given here. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Member } from "../../src/protocol/member.ts";
import type { SpaceInfo } from "../../src/protocol/space.ts";
import { type ApiError, toApiError } from "../api/api-client.ts";
import { memberApi } from "../api/member-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { LiveLine } from "../parts/live-line.tsx";
import { useStream } from "../stream/stream.ts";
import { InviteCard } from "./invite-card.tsx";
import { MemberRow } from "./member-row.tsx";

/** Statuses of accounts that are no longer members. */
const GONE = new Set(["removed", "declined", "canceled"]);

export function SpaceMembers({ space }: { space: SpaceInfo }) {
  const api = memberApi(space.id);
  const members = useSignal<readonly Member[] | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const load = async () => {
    try {
      members.value = await api.list();
      error.value = undefined;
    } catch (fault) {
      error.value = toApiError(fault);
    }
  };
  useEffect(() => void load(), [space.id]);
  const stream = useStream({ method: "GET", path: api.streamPath }, () => void load());
  const manages = space.ownRole === "owner" || space.ownRole === "admin";
  const shown = (members.value ?? []).filter(({ status }) => !GONE.has(status));
  return (
    <>
      <LiveLine state={stream.state.value}>{shown.length}</LiveLine>
      <ErrorNote error={stream.error.value ?? error.value} />
      <ul class="members">
        {shown.map((member) => (
          <MemberRow key={member.identity} member={member} api={api} manages={manages} onDone={() => void load()} />
        ))}
      </ul>
      {manages && <InviteCard api={api} isOwner={space.ownRole === "owner"} />}
    </>
  );
}
