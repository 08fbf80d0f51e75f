export const DEFAULT_ADDR = "127.0.0.1:7001";

/** Which server, and how long to wait for it. */
export interface Target {
  /** `host:port`. */
  readonly addr: string;
  readonly timeoutMs: number;
  /** The HTTP exchange goes to stderr, secrets taken out. */
  readonly verbose: boolean;
}
