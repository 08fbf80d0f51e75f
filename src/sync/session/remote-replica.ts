/** The kinds of a session's requests. */
export const SYNC_KINDS = {
  state: "sync.state",
  vector: "sync.vector",
  pull: "sync.pull",
  wants: "sync.wants",
  acl: "sync.acl",
  pending: "sync.pending",
  back: "sync.back",
  guest: "sync.guest",
  same: "sync.same",
} as const;

/** A replica that answers requests, over whatever connects the two. */
export interface RemoteReplica {
  request(kind: string, body: Uint8Array, options?: { readonly timeoutMs?: number }): Promise<Uint8Array>;
}
