export const DEFAULT_ADDR = "127.0.0.1:7001";
/** Default addresses, by the setting that overrides them. */
export const DEFAULT_ADDRS = { "listen.addr": DEFAULT_ADDR, "runtime.addr": "127.0.0.1:7010" } as const;

/** A listener of the server: the main API's, or the runtime's control API's. */
export type TargetKey = keyof typeof DEFAULT_ADDRS;

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
