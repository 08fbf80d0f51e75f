/** Two or three accounts do everything that sends, with words that can be recognised wherever they turn up. */

import { decodeInviteToken } from "../../../src/acl/record/invite-token.ts";
import { parseAccountId } from "../../../src/crypto/account-id.ts";
import { digestOfCid } from "../../../src/crypto/cid.ts";
import type { Secrets } from "../hostile/leak-search.ts";
import { type SpaceInfo, until } from "../server/client.ts";
import { acceptRequest, type Device, rowsOf, setName, spacesOf, untilRequest } from "../server/devices.ts";
import { createCollection, createObject, createSpace, setFields } from "../server/fixtures.ts";

const WAIT_MS = 40_000;
const DATASET = "canary_dataset_of_harvests";

export interface SharedLife {
  readonly space: SpaceInfo;
  readonly pair: SpaceInfo;
  readonly objectId: string;
  /** The token that guests read by, where there is one. */
  readonly guestToken: string | undefined;
  /** What nobody else may see: words, names, ids as text and as bytes, tokens and their secrets. */
  readonly secrets: Secrets;
  /** Writes of the owner in everything that a space holds; the words are added to the secrets. */
  write(stage: string): Promise<void>;
}

const untilRead = (device: Device, spaceId: string, text: unknown): Promise<void> =>
  until(async () => (await rowsOf(device, spaceId)).includes(String(text)), `to read "${text}"`, WAIT_MS);

export interface LifeOptions {
  readonly owner: Device;
  readonly other: Device;
  readonly guest?: Device;
  /** Whether the accounts reach each other's inbox. */
  readonly inboxes: boolean;
}

export async function liveTogether({ owner, other, guest, inboxes }: LifeOptions): Promise<SharedLife> {
  const canaries = createCanaries();
  const { secrets } = canaries;
  for (const [name, device] of Object.entries({ owner, other, ...(guest ? { guest } : {}) }))
    await nameAccount(name, device, canaries);
  const made = await makeSpace(owner, canaries);
  const { space, objectId } = made;
  await writeAs(owner, made, canaries, "of the owner");
  await letIn(owner, other, space, canaries);
  await untilRead(other, space.id, secrets["property of the owner"]);
  const { client } = owner.server;
  await using events = await client.stream("GET", `/v1/events/subscribe?scope=space&spaceId=${space.id}`);
  await events.expect("ready");
  await writeAs(other, made, canaries, "of the other");
  await untilRead(owner, space.id, secrets["property of the other"]);
  const pair = await openPair(owner, other, inboxes, canaries);
  const guestToken = guest && (await letGuestIn(owner, guest, space, canaries));
  return { space, pair, objectId, guestToken, secrets, write: (stage) => writeAs(owner, made, canaries, stage) };
}

type Canaries = ReturnType<typeof createCanaries>;

/** Everything that is said is noted under a name, so that it is looked for later. */
function createCanaries() {
  const secrets: Secrets = {};
  return {
    secrets,
    word(name: string, text = `canary ${name} of the orchard`): string {
      secrets[name] = text;
      return text;
    },
    cid(name: string, id: string): void {
      secrets[`${name} id`] = id;
      secrets[`${name} digest`] = digestOfCid(id)!;
    },
    token(name: string, text: string): string {
      secrets[`${name} token`] = text;
      const decoded = decodeInviteToken(text);
      secrets[`${name} seed`] = decoded.seed;
      if (decoded.kind !== "request") secrets["transport secret"] = decoded.transportSecret;
      return text;
    },
  };
}

async function nameAccount(name: string, device: Device, { secrets, cid, word }: Canaries): Promise<void> {
  const { client } = device.server;
  const account = await client.get<{ peerId: string; techSpaceId: string }>("/v1/account");
  secrets[`${name} account id`] = device.accountId;
  secrets[`${name} account key`] = parseAccountId(device.accountId)!;
  secrets[`${name} phrase`] = device.mnemonic;
  secrets[`${name} peer id`] = account.peerId;
  cid(`${name} own space`, account.techSpaceId);
  await client.put("/v1/account/metadata", { name: word(`${name} account name`) });
  await client.put("/v1/devices/me", { name: word(`${name} device name`) });
}

interface Made {
  readonly space: SpaceInfo;
  /** A chat with a document. */
  readonly objectId: string;
  /** The object that holds the dataset's records. */
  readonly recordsId: string;
}

async function makeSpace({ server: { client } }: Device, { secrets, cid, word }: Canaries): Promise<Made> {
  const space = await createSpace(client, word("space name"));
  cid("space", space.id);
  await client.patch(`/v1/spaces/${space.id}`, { description: word("space description") });
  secrets["dataset"] = DATASET;
  const fields = [{ key: word("field", "canary_field_of_pears"), kind: "string", mutableBy: "any" as const }];
  const records = await createCollection(client, space.id, { name: DATASET, fields });
  cid("collection", records.objectId);
  cid("type", records.typeId);
  const object = await createObject(client, space.id, { types: ["chat"] });
  cid("object", object.id);
  Object.assign(secrets, { blocks: "editor_blocks", messages: "chat_messages" });
  return { space, objectId: object.id, recordsId: records.objectId };
}

/** A record, a property, a document, a message and an event. */
async function writeAs(device: Device, made: Made, { word }: Canaries, stage: string): Promise<void> {
  const { space, objectId, recordsId } = made;
  const base = `/v1/spaces/${space.id}`;
  const writer = device.server.client;
  const id = word(`record id ${stage}`, `canary-record-${stage.replaceAll(" ", "-")}`);
  const value = word(`record ${stage}`);
  const records = [setFields(id, { canary_field_of_pears: value })];
  await writer.post(`${base}/modify`, { objectId: recordsId, dataset: DATASET, records });
  await setName(device, space.id, objectId, word(`property ${stage}`));
  // Long enough to be compressed before it is sealed.
  const content = `# ${word(`heading ${stage}`)}\n\n${`${word(`document ${stage}`)} `.repeat(60)}\n`;
  await writer.put(`${base}/objects/${objectId}/editor/markdown`, { content }, 200);
  await writer.post(`${base}/objects/${objectId}/chat/messages`, { text: word(`chat ${stage}`) }, 201);
  const data = { text: word(`event data ${stage}`) };
  const target = word(`event target ${stage}`, `canary-target-${stage.replaceAll(" ", "-")}`);
  const type = word("event type", "app.canary_event");
  await writer.post("/v1/events", { type, scope: "space", spaceId: space.id, target, data });
}

/** By an invite that is asked for and accepted; a reader first, then a writer. */
async function letIn(owner: Device, other: Device, { id }: SpaceInfo, { token, word }: Canaries): Promise<void> {
  const { client } = owner.server;
  const base = `/v1/spaces/${id}`;
  const invite = await client.post<{ inviteToken: string }>(`${base}/invites`, {}, 201);
  await client.post(`${base}/sync`, {}, 204);
  const join = { inviteToken: token("invite", invite.inviteToken), metadata: { name: word("join name") } };
  await other.server.client.post("/v1/spaces/join", join, 202);
  await acceptRequest(owner, id, await untilRequest(owner, id, WAIT_MS), "reader");
  await client.post(`${base}/acl/permissions`, { changes: [{ identity: other.accountId, permission: "writer" }] }, 204);
  await until(
    async () => (await spacesOf(other)).some(({ ownRole }) => ownRole === "writer"),
    "to be a writer",
    WAIT_MS,
  );
}

async function openPair(owner: Device, other: Device, inboxes: boolean, { secrets, cid, word }: Canaries) {
  const { client } = other.server;
  const pair = await owner.server.client.post<SpaceInfo>(
    "/v1/spaces/one-to-one",
    { otherIdentity: other.accountId },
    201,
  );
  cid("one-to-one space", pair.id);
  if (!inboxes) await client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity: owner.accountId }, 204);
  await until(
    async () => (await client.request("GET", `/v1/spaces/${pair.id}`)).status === 200,
    "the one-to-one space at the other",
    WAIT_MS,
  );
  await client.post(`/v1/spaces/${pair.id}/one-to-one/accept`, {}, 200);
  const initialProperties = { svc: { name: word("one-to-one text") } };
  cid("one-to-one object", (await createObject(client, pair.id, { initialProperties })).id);
  await untilRead(owner, pair.id, secrets["one-to-one text"]);
  return pair;
}

async function letGuestIn(owner: Device, guest: Device, space: SpaceInfo, canaries: Canaries): Promise<string> {
  const made = await owner.server.client.post<{ inviteToken: string }>(`/v1/spaces/${space.id}/guest-key`, {}, 201);
  const inviteToken = canaries.token("guest", made.inviteToken);
  await guest.server.client.post("/v1/spaces/join", { inviteToken }, 202);
  await until(async () => (await spacesOf(guest)).some(({ id }) => id === space.id), "the space at the guest", WAIT_MS);
  await untilRead(guest, space.id, canaries.secrets["property of the other"]);
  return inviteToken;
}
