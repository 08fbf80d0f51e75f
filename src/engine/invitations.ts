import type { createJoinDesk, RequestAnswer } from "../account/joining/join-desk.ts";
import type { JoinService } from "../account/joining/join-service.ts";
import type { DisplayHint, OneToOneService } from "../account/joining/one-to-one-service.ts";
import type { SpaceClaims } from "../account/joining/space-claims.ts";
import type { PlaceHints } from "../account/rows/place-hints.ts";
import { base64ToBytes, bytesToBase64 } from "../base/bytes.ts";
import type { AccountId, SpaceId } from "../base/ids.ts";
import { accountIdOf, parseAccountId } from "../crypto/account-id.ts";
import { digestOfCid } from "../crypto/cid.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Space } from "../space/space.ts";
import type { Outbox } from "../sync/inbox/outbox.ts";
import type { InboxHandlers } from "../sync/inbox/received-messages.ts";

/** Kinds of inbox messages between accounts. */
const ADDED = "space.added";
const ONE_TO_ONE = "space.one-to-one";
const ASKED = "space.asked";
const ANSWERED = "space.answered";
const HINT_CHARS = 512;
const SECRET_BYTES = 32;

/** Who handles the inbox messages that notify this account of spaces that it could not know of. */
export function invitationHandlers(deps: {
  claims: Pick<SpaceClaims, "add">;
  oneToOne: Pick<OneToOneService, "registerIncoming">;
  desk: ReturnType<typeof createJoinDesk>;
  joins: Pick<JoinService, "answered">;
  hints: PlaceHints;
}): InboxHandlers {
  const asked = async (from: AccountId, { spaceId, pending }: JsonObject): Promise<void> => {
    const bytes = typeof pending === "string" ? base64ToBytes(pending) : undefined;
    if (typeof spaceId === "string" && digestOfCid(spaceId) && bytes)
      await deps.desk.receive(from, spaceId as SpaceId, bytes);
  };
  const answered = async (from: AccountId, { spaceId, pending, answer }: JsonObject): Promise<void> => {
    const id = typeof pending === "string" ? base64ToBytes(pending) : undefined;
    if (typeof spaceId !== "string" || !id || (answer !== "waits" && answer !== "refused")) return;
    await deps.joins.answered(spaceId as SpaceId, parseAccountId(from)!, id, answer);
  };
  const added = async (from: AccountId, body: JsonObject): Promise<void> => {
    const { spaceId, transport } = body;
    const secret = typeof transport === "string" ? base64ToBytes(transport) : undefined;
    if (typeof spaceId !== "string" || !digestOfCid(spaceId) || secret?.length !== SECRET_BYTES) return;
    const { name } = hintIn(body);
    await deps.hints.keep(spaceId as SpaceId, secret);
    await deps.claims.add({
      spaceId: spaceId as SpaceId,
      adder: from,
      transportSecret: secret,
      ...(name === undefined ? {} : { name }),
    });
  };
  return new Map([
    [ASKED, asked],
    [ANSWERED, answered],
    [ADDED, added],
    // Only the verified sender says whose space it is.
    [ONE_TO_ONE, (from, body) => deps.oneToOne.registerIncoming(from, hintIn(body))],
  ]);
}

/** Sends inbox messages that notify accounts of spaces that they could not know of. */
export function createInvitationMessages(deps: { outbox: Pick<Outbox, "send">; profile(): DisplayHint | undefined }) {
  const { outbox } = deps;
  return {
    /** Leaves an inbox message for each account; the messages are durable when it resolves. */
    async added(space: Space, name: string | undefined, identities: readonly string[]): Promise<void> {
      const secret = space.keys.transportSecret();
      if (!secret) return;
      const body: JsonObject = { spaceId: space.id, transport: bytesToBase64(secret), ...hintIn({ name: name ?? "" }) };
      for (const identity of identities) await outbox.send(identity as AccountId, { kind: ADDED, body });
    },
    /** Hands a request to join, or its withdrawal, to each account. */
    async asked(receivers: readonly Uint8Array[], spaceId: SpaceId, pending: Uint8Array): Promise<void> {
      const body: JsonObject = { spaceId, pending: bytesToBase64(pending) };
      for (const to of receivers) await outbox.send(accountIdOf(to), { kind: ASKED, body });
    },
    answered: (to: AccountId, spaceId: SpaceId, pendingId: Uint8Array, answer: RequestAnswer): Promise<void> =>
      outbox.send(to, { kind: ANSWERED, body: { spaceId, pending: bytesToBase64(pendingId), answer } }),
    oneToOne: (other: AccountId): Promise<void> =>
      outbox.send(other, { kind: ONE_TO_ONE, body: { ...hintIn({ ...deps.profile() }) } }),
  };
}

/** Takes what an account says about itself or a space, limited to what is shown. */
function hintIn(body: JsonObject): DisplayHint {
  const hint: DisplayHint = {};
  for (const field of ["name", "description", "iconCid"] as const) {
    const value = body[field];
    if (typeof value === "string" && value !== "") hint[field] = value.slice(0, HINT_CHARS);
  }
  return hint;
}
