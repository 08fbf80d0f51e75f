import { refusedAs, refusedPart, type SvcError } from "../../protocol/errors.ts";
import { isJsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

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
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    throw refused("name", refusal("value.too_long", { limitBytes: MAX_NAME_BYTES }));
  const checked = new Map<string, AppBag | null>();
  for (const [slug, bag] of Object.entries(apps)) {
    checkSlug("apps", slug);
    checked.set(slug, bag === null ? null : checkBag(`apps.${slug}`, bag));
  }
  if (name === "" && checked.size === 0) {
    throw refusedAs("request.missing_field", { field: "name" }, refusal("device.empty_update"));
  }
  return { ...(name === "" ? {} : { name }), ...(checked.size === 0 ? {} : { apps: checked }) };
}

/** Checks the slug of an app, which is one segment of a field path. Errors: request.invalid_field {field, reason}. */
export function checkSlug(field: string, slug: string): string {
  const fault = keyFault("slug", slug);
  if (fault) throw refused(field, fault);
  return slug;
}

function checkBag(field: string, bag: unknown): AppBag {
  if (!isJsonObject(bag)) throw refused(field, refusal("app.object"));
  const checked: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(bag)) {
    const fault = keyFault("key", key);
    if (fault) throw refused(field, fault);
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
      throw refused(`${field}.${key}`, refusal("app.value"));
    }
    checked[key] = value;
  }
  return checked;
}

/** Why a text cannot be a segment of a field path. */
function keyFault(what: "slug" | "key", text: string): Refusal | undefined {
  const named = { what, key: text.slice(0, 64) };
  if (text === "") return refusal("app.empty", named);
  if (text.includes(".")) return refusal("app.dot", named);
  if (text === "*" || text === "__proto__") return refusal("app.data_name", named);
  if (Buffer.byteLength(text) > MAX_KEY_BYTES) return refusal("app.too_long", { ...named, limitBytes: MAX_KEY_BYTES });
  return undefined;
}

const refused = (field: string, why: Refusal): SvcError =>
  refusedPart("request.invalid_field", { field }, why, "field");

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
