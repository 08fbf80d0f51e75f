import { closeSync, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import type { Clock } from "./clock.ts";
import type { Log, LogFields, LogFormat, LogLevel } from "./log.ts";
import { LOG_LEVELS } from "./log.ts";
import { formatLine } from "./log-format.ts";

/** Takes finished lines. */
export interface LogOutput {
  readonly format: LogFormat;
  write(text: string): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly outputs: readonly LogOutput[];
  readonly clock: Clock;
}

/** Creates the log of a process. A line below `level` costs only a comparison. */
export function createLog(options: LogOptions): Log {
  return new LineLog(options, LOG_LEVELS.indexOf(options.level), {});
}

class LineLog implements Log {
  private readonly options: LogOptions;
  private readonly threshold: number;
  private readonly fields: LogFields;

  constructor(options: LogOptions, threshold: number, fields: LogFields) {
    this.options = options;
    this.threshold = threshold;
    this.fields = fields;
  }

  enabled(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= this.threshold;
  }

  debug(message: string, fields?: LogFields): void {
    if (this.threshold <= 0) this.write("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    if (this.threshold <= 1) this.write("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    if (this.threshold <= 2) this.write("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.write("error", message, fields);
  }

  child(fields: LogFields): Log {
    return new LineLog(this.options, this.threshold, { ...this.fields, ...fields });
  }

  private write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    const { clock, outputs } = this.options;
    const line = {
      time: new Date(clock.nowMs()),
      level,
      message,
      fields: fields ? { ...this.fields, ...fields } : this.fields,
    };
    for (const output of outputs) output.write(formatLine(line, output.format));
  }
}

/** Writes to standard error; in colour only where that is wanted and NO_COLOR does not forbid it. */
export function stderrOutput(
  format: LogFormat | undefined,
  env: Readonly<Record<string, string | undefined>>,
): LogOutput {
  // `process.stderr` would make a stream of the descriptor first, which takes 4 ms of a start.
  const wanted = format ?? (isatty(2) ? "colorized" : "plaintext");
  const colorless = wanted === "colorized" && (env["NO_COLOR"] ?? "") !== "";
  return { format: colorless ? "plaintext" : wanted, write: (text) => writeFully(2, text) };
}

/** A file to which lines are appended; it is created with mode 0600 if missing. Throws what opening it throws. */
export function fileOutput(path: string, format: LogFormat | undefined): LogOutput & Disposable {
  const fd = openSync(path, "a", 0o600);
  return {
    format: format === "json" ? "json" : "plaintext",
    write: (text) => writeFully(fd, text),
    [Symbol.dispose]: () => closeSync(fd),
  };
}

/**
 * Writes synchronously, so that the last lines of a dying process arrive. A failure to write the log does not end the
 * process.
 */
function writeFully(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  } catch (error) {
    // The reader is gone (EPIPE) or too slow (EAGAIN), or the disk is full or broken: there is nowhere left to report
    // that.
    if (!["EPIPE", "EAGAIN", "ENOSPC", "EIO"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
