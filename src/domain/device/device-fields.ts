import { type SvcError, svcError } from "../../protocol/errors.ts";
import { isJsonObject } from "../../protocol/json.ts";

/** What a client may say about an installed app: a flat bag of scalars, by convention `{version}`. */
export type AppBag = Readonly<Record<string, string | number | boolean>>;

/** Body of `PUT /v1/devices/me`, its top level already checked. */
export interface DeviceUpdateInput {
  readonly name?: string;
  readonly apps?: Readonly<Record<string, unknown>>;
}

/** What the row is to say; at least one part is there. */
export interface DeviceUpdate {
  readonly name?: string;
  /** Apps to install or change, and (null) to uninstall. Others stay as they are. */
  readonly apps?: ReadonlyMap<string, AppBag | null>;
}

const MAX_NAME_BYTES = 256;
const MAX_KEY_BYTES = 128;

/**
 * Checks a device's update of its own row (DEV-1). An empty name means unchanged.
 * Errors: request.missing_field (nothing to update); request.invalid_field {field, reason}.
 */
export function checkDeviceUpdate({ name = "", apps = {} }: DeviceUpdateInput): DeviceUpdate {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw refusal("name", `at most ${MAX_NAME_BYTES} bytes`);
  const checked = new Map<string, AppBag | null>();
  for (const [slug, bag] of Object.entries(apps)) {
    checkSlug("apps", slug);
    checked.set(slug, bag === null ? null : checkBag(`apps.${slug}`, bag));
  }
  if (name === "" && checked.size === 0) {
    throw svcError("request.missing_field", { field: "name" }, "Give a name or apps; an empty update says nothing");
  }
  return { ...(name === "" ? {} : { name }), ...(checked.size === 0 ? {} : { apps: checked }) };
}

/** Checks the slug of an app, which is one segment of a field path. Errors: request.invalid_field {field, reason}. */
export function checkSlug(field: string, slug: string): string {
  const fault = keyFault(slug);
  if (fault !== undefined) throw refusal(field, `the slug ${JSON.stringify(slug.slice(0, 64))} ${fault}`);
  return slug;
}

function checkBag(field: string, bag: unknown): AppBag {
  if (!isJsonObject(bag))
    throw refusal(field, "must be an object of strings, numbers and booleans, or null to uninstall");
  const checked: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(bag)) {
    const fault = keyFault(key);
    if (fault !== undefined) throw refusal(field, `the key ${JSON.stringify(key.slice(0, 64))} ${fault}`);
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
      throw refusal(`${field}.${key}`, "must be a string, a number or a boolean");
    }
    checked[key] = value;
  }
  return checked;
}

/** Why a text cannot be a segment of a field path. */
function keyFault(key: string): string | undefined {
  if (key === "") return "is empty";
  if (key.includes(".")) return "has a dot";
  if (key === "*" || key === "__proto__") return "is a name of the data language";
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `has more than ${MAX_KEY_BYTES} bytes`;
  return undefined;
}

function refusal(field: string, reason: string): SvcError {
  return svcError("request.invalid_field", { field, reason }, `The field ${field} is refused: ${reason}`);
}

/** The `os` vocabulary of the registry (DEV-1). */
export type DeviceOs = "linux" | "darwin" | "windows" | "android" | "ios";

/** What this process runs on (`process.platform`); systems outside the vocabulary count as linux. */
export function deviceOs(platform: string): DeviceOs {
  switch (platform) {
    case "darwin":
    case "android":
    case "ios":
      return platform;
    case "win32":
    case "cygwin":
      return "windows";
    default:
      return "linux";
  }
}
