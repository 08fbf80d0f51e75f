export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export const LOG_FORMATS = ["colorized", "plaintext", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** What a line carries besides its message: ids, counts, durations (`…Ms`), an error under `err`. Never secrets. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The one log of a process. `child` adds fields (`component`, `requestId`, …) to every line it writes. */
export interface Log {
  /** Returns whether a line of this level would be written, so that callers can skip costly fields. */
  enabled(level: LogLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Log;
}

export const silentLog: Log = {
  enabled: () => false,
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
