import { rm } from "node:fs/promises";
import { readWalletFile, writeWalletFile } from "../../crypto/wallet-file.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";
import { PLATFORMS, type Platform } from "../../protocol/push-node.ts";

/** The token that an app gave to this device's server. */
interface PushToken {
  readonly platform: Platform;
  readonly token: string;
  /** When it was given, Unix milliseconds. */
  readonly registeredMs: number;
}

/** `revoked`: the node still has to be notified that there is no token any more. */
export type TokenState =
  | { readonly kind: "none" }
  | { readonly kind: "revoked" }
  | ({ readonly kind: "set" } & PushToken);

/** The device's token in a file that its owner alone can read; a crash leaves what was there or what came, whole. */
export interface TokenFile {
  read(): Promise<TokenState>;
  set(token: PushToken): Promise<void>;
  /** Nothing is registered from now on. */
  revoke(): Promise<void>;
  /** Called once the node was notified. Leaves a token that was set meanwhile. */
  forgetRevoked(): Promise<void>;
}

export function createTokenFile(path: string): TokenFile {
  const read = async (): Promise<TokenState> => {
    const text = await readWalletFile(path);
    return text === undefined ? { kind: "none" } : stateOf(text);
  };
  return {
    read,
    set: (token) => writeWalletFile(path, JSON.stringify(token)),
    async revoke() {
      if ((await read()).kind !== "none") await writeWalletFile(path, JSON.stringify({ revoked: true }));
    },
    async forgetRevoked() {
      if ((await read()).kind === "revoked") await rm(path, { force: true });
    },
  };
}

/** An unreadable file counts as no token: the app registers again at its next start. */
function stateOf(text: string): TokenState {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return { kind: "none" };
  }
  if (!isJsonObject(value)) return { kind: "none" };
  if (value["revoked"] === true) return { kind: "revoked" };
  const { platform, token, registeredMs } = value;
  const known = PLATFORMS.find((one) => one === platform);
  if (!known || typeof token !== "string" || typeof registeredMs !== "number") return { kind: "none" };
  return { kind: "set", platform: known, token, registeredMs };
}
