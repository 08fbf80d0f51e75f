export const DEFAULT_ADDR = "127.0.0.1:7001";

/** Which server, and how long to wait for it. */
export interface Target {
  /** `host:port`. */
  readonly addr: string;
  /** What said so, where it was neither the flag nor the default: `listen.addr (<file>:<line>)`. */
  readonly source?: string | undefined;
  readonly timeoutMs: number;
  /** The HTTP exchange goes to stderr, secrets taken out. */
  readonly verbose: boolean;
}
