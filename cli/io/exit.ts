/** Exit codes of the command line (SRV-7). */
export const EXIT = { ok: 0, user: 1, server: 2, unreachable: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with `exitCode`; `message` goes to stderr unchanged, with its lines. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** A mistake in the command line itself: an unknown flag, a missing argument, a file that cannot be read. */
export class UsageError extends CliError {
  constructor(message: string) {
    super(message, EXIT.user);
  }
}

/** An answer of the server that is not a success. */
export class ApiError extends CliError {
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(status: number, code: string, message: string, details: Record<string, unknown> = {}) {
    super(message, exitCodeOfStatus(status));
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** 2xx is success, 4xx is the caller's fault; any other status is the server's fault. */
export function exitCodeOfStatus(status: number): ExitCode {
  if (status >= 200 && status < 300) return EXIT.ok;
  return status >= 400 && status < 500 ? EXIT.user : EXIT.server;
}
