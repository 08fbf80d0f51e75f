import type { AccountId, PeerId, SpaceId } from "../base/ids.ts";
import type { DeviceCopied } from "../protocol/meta.ts";

/** What the account host and the server need of a booted engine, whatever else it can do. */
export interface EngineLifecycle {
  readonly accountId: AccountId;
  readonly peerId: PeerId;
  /** True while the one-shot boot pass runs (SRV-3). */
  bootstrapping(): boolean;
  /** Spaces whose creation could not be finished yet. */
  unfinishedSpaces(): readonly SpaceId[];
  /** Whether another server runs with this device's key. */
  deviceCopied(): DeviceCopied | undefined;
  /** Stops the workers and closes every database; resolves once nothing of the account is open. Called once. */
  close(): Promise<void>;
}
