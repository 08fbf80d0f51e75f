/** Two or three accounts do everything that sends, with words that can be recognised wherever they turn up. */

import { decodeInviteToken } from "../../src/acl/invite-token.ts";
import { parseAccountId } from "../../src/crypto/account-id.ts";
import { digestOfCid } from "../../src/crypto/cid.ts";
import { type SpaceInfo, until } from "./client.ts";
import { type Device, rowsOf, setName, spacesOf } from "./devices.ts";
import { createCollection, createObject, createSpace, setFields } from "./fixtures.ts";
import type { Secrets } from "./leak-search.ts";

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
  const secrets: Secrets = {};
  const word = (name: string, text = `canary ${name} of the orchard`): string => {
    secrets[name] = text;
    return text;
  };
  const cid = (name: string, id: string): void => {
    secrets[`${name} id`] = id;
    secrets[`${name} digest`] = digestOfCid(id)!;
  };
  const token = (name: string, text: string): string => {
    secrets[`${name} token`] = text;
    const { seed, transportSecret } = decodeInviteToken(text);
    Object.assign(secrets, { [`${name} seed`]: seed, "transport secret": transportSecret });
    return text;
  };
  for (const [name, device] of Object.entries({ owner, other, ...(guest ? { guest } : {}) })) {
    const account = await device.server.client.get<{ peerId: string; techSpaceId: string }>("/v1/account");
    secrets[`${name} account id`] = device.accountId;
    secrets[`${name} account key`] = parseAccountId(device.accountId)!;
    secrets[`${name} phrase`] = device.mnemonic;
    secrets[`${name} peer id`] = account.peerId;
    cid(`${name} own space`, account.techSpaceId);
    await device.server.client.put("/v1/account/metadata", { name: word(`${name} account name`) });
    await device.server.client.put("/v1/devices/me", { name: word(`${name} device name`) });
  }

  const { client } = owner.server;
  const space = await createSpace(client, word("space name"));
  cid("space", space.id);
  const base = `/v1/spaces/${space.id}`;
  await client.patch(base, { description: word("space description") });
  secrets["dataset"] = DATASET;
  const fields = [{ key: word("field", "canary_field_of_pears"), kind: "string", mutableBy: "any" as const }];
  const records = await createCollection(client, space.id, { name: DATASET, fields });
  cid("collection", records.objectId);
  cid("type", records.typeId);
  const object = await createObject(client, space.id, { types: ["chat"] });
  cid("object", object.id);
  Object.assign(secrets, { blocks: "editor_blocks", messages: "chat_messages" });

  const writeAs = async (device: Device, stage: string): Promise<void> => {
    const writer = device.server.client;
    const id = word(`record id ${stage}`, `canary-record-${stage.replaceAll(" ", "-")}`);
    const value = word(`record ${stage}`);
    const batch = {
      objectId: records.objectId,
      dataset: DATASET,
      records: [setFields(id, { canary_field_of_pears: value })],
    };
    await writer.post(`${base}/modify`, batch);
    await setName(device, space.id, object.id, word(`property ${stage}`));
    // Long enough to be compressed before it is sealed.
    const content = `# ${word(`heading ${stage}`)}\n\n${`${word(`document ${stage}`)} `.repeat(60)}\n`;
    await writer.put(`${base}/objects/${object.id}/editor/markdown`, { content }, 200);
    await writer.post(`${base}/objects/${object.id}/chat/messages`, { text: word(`chat ${stage}`) }, 201);
    const data = { text: word(`event data ${stage}`) };
    const target = word(`event target ${stage}`, `canary-target-${stage.replaceAll(" ", "-")}`);
    await writer.post("/v1/events", {
      type: word("event type", "app.canary_event"),
      scope: "space",
      spaceId: space.id,
      target,
      data,
    });
  };
  await writeAs(owner, "of the owner");

  const invite = await client.post<{ inviteToken: string }>(`${base}/invites`, {}, 201);
  await client.post(`${base}/sync`, {}, 204);
  const metadata = { name: word("join name") };
  await other.server.client.post(
    "/v1/spaces/join",
    { inviteToken: token("invite", invite.inviteToken), metadata },
    202,
  );
  let requests: { requestRecordId: string }[] = [];
  await until(
    async () => {
      ({ requests } = await client.get<{ requests: { requestRecordId: string }[] }>(`${base}/members/requests`));
      return requests.length > 0;
    },
    "a request to join",
    WAIT_MS,
  );
  const accept = { requestRecordId: requests[0]!.requestRecordId, permission: "reader" };
  await client.post(`${base}/acl/accept`, accept, 204);
  await client.post(`${base}/acl/permissions`, { changes: [{ identity: other.accountId, permission: "writer" }] }, 204);
  await until(
    async () => (await spacesOf(other)).some(({ ownRole }) => ownRole === "writer"),
    "to be a writer",
    WAIT_MS,
  );
  await untilRead(other, space.id, secrets["property of the owner"]);
  await using events = await client.stream("GET", `/v1/events/subscribe?scope=space&spaceId=${space.id}`);
  await events.expect("ready");
  await writeAs(other, "of the other");
  await untilRead(owner, space.id, secrets["property of the other"]);

  const { accountId } = other;
  const pair = await client.post<SpaceInfo>("/v1/spaces/one-to-one", { otherIdentity: accountId }, 201);
  cid("one-to-one space", pair.id);
  if (!inboxes)
    await other.server.client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity: owner.accountId }, 204);
  await until(
    async () => (await other.server.client.request("GET", `/v1/spaces/${pair.id}`)).status === 200,
    "the one-to-one space at the other",
    WAIT_MS,
  );
  await other.server.client.post(`/v1/spaces/${pair.id}/one-to-one/accept`, {}, 200);
  const initialProperties = { svc: { name: word("one-to-one text") } };
  cid("one-to-one object", (await createObject(other.server.client, pair.id, { initialProperties })).id);
  await untilRead(owner, pair.id, secrets["one-to-one text"]);

  let guestToken: string | undefined;
  if (guest) {
    const made = await client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201);
    guestToken = token("guest", made.inviteToken);
    await guest.server.client.post("/v1/spaces/join", { inviteToken: guestToken }, 202);
    await until(
      async () => (await spacesOf(guest)).some(({ id }) => id === space.id),
      "the space at the guest",
      WAIT_MS,
    );
    await untilRead(guest, space.id, secrets["property of the other"]);
  }
  return { space, pair, objectId: object.id, guestToken, secrets, write: (stage) => writeAs(owner, stage) };
}
