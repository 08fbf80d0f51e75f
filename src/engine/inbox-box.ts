import type { Space } from "../space/space.ts";
import type { InboxBox } from "../sync/inbox/inbox-messages.ts";

/** Keeps inbox messages in the database of the account's own space. */
export function inboxBoxOf({ engine, store: { inbox } }: Space): InboxBox {
  return {
    outgoing: inbox.outgoing,
    put: (message) => engine.write(() => inbox.put(message)),
    drop: (id) => engine.write(() => inbox.drop(id)),
    isTaken: inbox.isTaken,
    noteTaken: (id, nowMs, remembered) => engine.write(() => inbox.noteTaken(id, nowMs, remembered)),
  };
}
