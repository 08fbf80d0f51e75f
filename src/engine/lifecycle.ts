import type { AccountId, PeerId } from "../base/ids.ts";

/** What the account host and the server need of a booted engine, whatever else it can do. */
export interface EngineLifecycle {
  readonly accountId: AccountId;
  readonly peerId: PeerId;
  /** True while the one-shot boot pass runs (SRV-3). */
  bootstrapping(): boolean;
  /** Stops the workers and closes every database; resolves once nothing of the account is open. Called once. */
  close(): Promise<void>;
}
