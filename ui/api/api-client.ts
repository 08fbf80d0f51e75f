/** The page's only way to call the server: JSON over same-origin requests, with faults as ApiError. */
import type { IdentityInfo } from "../../src/protocol/identity.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import type { AuthBody, AuthResult, AuthStatus, Health } from "../../src/protocol/meta.ts";
import type { SpaceInfo } from "../../src/protocol/space.ts";

/** The server's error, or `unreachable` (status 0) if it did not answer. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: JsonObject | undefined;

  constructor(code: string, message: string, status: number, details?: JsonObject) {
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/** A record of any dataset. */
export type AnyRecord = JsonObject & { id: string };

export interface QueryBody {
  objectId?: string;
  dataset?: string;
  filter?: JsonObject;
  sort?: string[];
  limit?: number;
  includeTotal?: boolean;
}

export interface AccountRecord {
  id: string;
  peerId: string;
  techSpaceId: string;
  metadata?: Profile;
}

export interface Profile {
  name?: string;
  description?: string;
  iconCid?: string;
}

/** The outcome of a write; `rejections` lists what was refused. */
export interface WriteResult {
  recordIds: string[];
  rejections?: { recordIndex: number; recordId?: string; opIndex: number; reason: string }[];
}

export interface DatasetItem {
  name: string;
  schema: JsonObject;
  typeId?: string;
}

export const api = {
  health: () => call<Health>("GET", "/v1/health"),
  authStatus: () => call<AuthStatus>("GET", "/v1/auth"),
  authenticate: (body: AuthBody) => call<AuthResult>("POST", "/v1/auth", body),
  account: () => call<AccountRecord>("GET", "/v1/account"),
  identities: async () => (await call<{ identities: IdentityInfo[] }>("GET", "/v1/identities")).identities,
  setProfile: (profile: Profile) => call<void>("PUT", "/v1/account/metadata", profile),
  spaces: () => call<SpaceInfo[]>("GET", "/v1/spaces?status=all"),
  createSpace: (name: string) => call<SpaceInfo>("POST", "/v1/spaces", { name }),
  renameSpace: (spaceId: string, name: string, description: string) =>
    call<void>("PATCH", spacePath(spaceId), { name, description }),
  deleteSpace: (spaceId: string) => call<void>("DELETE", spacePath(spaceId)),
  space: (spaceId: string) => call<SpaceInfo>("GET", spacePath(spaceId)),
  datasets: async (spaceId: string) =>
    (await call<{ datasets: DatasetItem[] }>("GET", spacePath(spaceId, "datasets"))).datasets,
  createObject: (spaceId: string, name: string, types: readonly string[]) =>
    call<{ id: string }>("POST", spacePath(spaceId, "objects"), { types, initialProperties: { svc: { name } } }),
  renameObject: (spaceId: string, objectId: string, name: string) =>
    call<WriteResult>("POST", spacePath(spaceId, "properties", objectId, "set", "svc"), { patch: { name } }),
  deleteObject: (spaceId: string, objectId: string) => call<void>("DELETE", spacePath(spaceId, "objects", objectId)),
};

/** `/v1/spaces/<spaceId>/…`, every segment encoded. */
export function spacePath(...segments: string[]): string {
  return `/v1/spaces/${segments.map(encodeURIComponent).join("/")}`;
}

/** Makes one request and resolves to its JSON reply; undefined for a 204. Throws ApiError. */
export async function call<Reply>(method: string, path: string, body?: object): Promise<Reply> {
  const response = await send(method, path, body);
  return (response.status === 204 ? undefined : await response.json()) as Reply;
}

/** Sends bytes unchanged. Throws ApiError. */
export async function sendBytes(path: string, bytes: Blob): Promise<void> {
  const headers = { "Content-Type": bytes.type || "application/octet-stream" };
  await ask(path, { method: "POST", body: bytes, headers });
}

/** Sends a request and resolves to a successful response, unread. Throws ApiError for everything else. */
function send(method: string, path: string, body?: object): Promise<Response> {
  const json = body ? { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } } : {};
  return ask(path, { method, ...json });
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError("unreachable", "The server does not answer. Start it with svc run.", 0);
  }
  if (response.ok) return response;
  throw await readError(response);
}

async function readError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; details?: JsonObject } };
    return new ApiError(error.code, error.message, response.status, error.details);
  } catch {
    return new ApiError("unreadable", `The server answered ${response.status} without an error body.`, response.status);
  }
}

/** Converts any failure to one that can be shown. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError("page", error instanceof Error ? error.message : String(error), 0);
}
