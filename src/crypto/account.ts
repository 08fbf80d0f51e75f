import type { AccountId, PeerId } from "../base/ids.ts";
import type { Signer } from "./sign.ts";

/** The account as which a server runs, with the secrets its spaces need. */
export interface Account {
  readonly id: AccountId;
  readonly peerId: PeerId;
  /** 32-byte Ed25519 seed of the account key. */
  readonly seed: Uint8Array;
  readonly signer: Signer;
}
