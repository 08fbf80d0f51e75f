import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Wallet } from "../../crypto/wallet.ts";
import type { Config } from "../config/config.ts";
import type { AnswerRequest } from "../runtime/local-api.ts";
import type { Engine } from "./engine.ts";

export interface BootOptions {
  /** Directory of the account's data; locked for this process. */
  readonly accountDir: string;
  readonly wallet: Wallet;
  readonly config: Config;
  readonly log: Log;
  readonly clock: Clock;
  /** The account was generated a moment ago, so no other device or account can have any of its data. */
  readonly brandNew?: boolean;
  /** Whether many requests are coming in; if absent, they never are. */
  readonly isBusy?: () => boolean;
  /** Answers requests as the HTTP listener does, for programs; without it there is no runtime. */
  readonly answer?: AnswerRequest;
}

/** Opens an account's engine. If it throws, the boot fails; it must then have closed everything that it opened. */
export type BootEngine = (options: BootOptions) => Promise<Engine>;
