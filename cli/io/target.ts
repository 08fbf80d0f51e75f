export const DEFAULT_ADDR = "127.0.0.1:7001";

/** The server to call, and how long to wait for it. */
export interface Target {
  /** `host:port`. */
  readonly addr: string;
  /** Where the address comes from if it is neither the flag nor the default: `listen.addr (<file>:<line>)`. */
  readonly source?: string | undefined;
  readonly timeoutMs: number;
  /** Print the HTTP exchange to stderr, without secrets. */
  readonly verbose: boolean;
}
