/** Actions on a space that is not open yet. */
import type { SpaceInfo } from "../../src/protocol/space.ts";
import { joinApi } from "../api/member-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { refresh } from "../state/session.ts";

type Action = readonly [label: string, perform: (spaceId: string) => Promise<unknown>];

const ACTIONS: Partial<Record<SpaceInfo["status"], readonly Action[]>> = {
  joining: [["Take the request back", joinApi.cancel]],
  invite_pending: [
    ["Accept", joinApi.acceptInvite],
    ["Decline", joinApi.declineInvite],
  ],
  invite_declined: [["Accept after all", joinApi.acceptInvite]],
  one_to_one_pending: [
    ["Accept", joinApi.acceptOneToOne],
    ["Decline", joinApi.declineOneToOne],
  ],
  one_to_one_declined: [["Accept after all", joinApi.acceptOneToOne]],
};

export function PendingSpace({ space }: { space: SpaceInfo }) {
  const { busy, error, run } = useFormAction();
  const actions = ACTIONS[space.status];
  if (!actions) return null;
  return (
    <>
      <div class="row">
        {actions.map(([label, perform]) => (
          <button
            key={label}
            type="button"
            disabled={busy}
            onClick={() =>
              run(async () => {
                await perform(space.id);
                await refresh();
              })
            }
          >
            {label}
          </button>
        ))}
      </div>
      <ErrorNote error={error} />
    </>
  );
}
