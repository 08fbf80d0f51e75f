import { type SharedServer, useServer } from "../rule.ts";
import type { Client, SpaceInfo } from "./client.ts";
import { ABSENT, createSpace } from "./fixtures.ts";
import { startServer } from "./server.ts";

/** A member as the roster shows it. */
export interface Member {
  identity: string;
  permission: string;
  status: string;
  name?: string;
}

export interface Invite {
  recordId: string;
  permission: string;
  inviteToken?: string;
}

/** One server with a space that is to be shared, and accounts that exist on no server that runs. */
export interface SharingServer {
  readonly shared: SharedServer;
  /** What scenarios over it name: `S` the space, `NONE` one that there is not. */
  readonly context: () => { client: Client; vars: Record<string, string> };
  readonly space: SpaceInfo;
  readonly accountId: string;
  readonly otherId: string;
  readonly thirdId: string;
}

/** It is there while the tests of the file run. */
export function useSharingServer(): SharingServer {
  let here: Omit<SharingServer, "shared" | "context"> | undefined;
  const shared = useServer({}, async ({ client }) => {
    const space = await createSpace(client, "shared");
    const accountId = (await client.get<{ id: string }>("/v1/account")).id;
    here = { space, accountId, otherId: await strangerId(), thirdId: await strangerId() };
  });
  const context = () => {
    const { space, accountId, otherId } = here!;
    const vars = { S: `/v1/spaces/${space.id}`, spaceId: space.id, accountId, otherId, NONE: `/v1/spaces/${ABSENT}` };
    return { client: shared.client, vars };
  };
  return {
    shared,
    context,
    get space() {
      return here!.space;
    },
    get accountId() {
      return here!.accountId;
    },
    get otherId() {
      return here!.otherId;
    },
    get thirdId() {
      return here!.thirdId;
    },
  };
}

/** The id of an account that exists, on no server that runs. */
async function strangerId(): Promise<string> {
  await using server = await startServer();
  return (await server.client.get<{ id: string }>("/v1/account")).id;
}
