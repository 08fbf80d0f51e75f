import type { LogFields, LogFormat, LogLevel } from "./log.ts";

export interface LogLine {
  readonly time: Date;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

/** Names of fields that carry secrets: their values never appear in a line, whoever logs them. */
const SECRET_NAME =
  /mnemonic|passkey|password|secret|token$|authorization|cookie|entropy|seed|privatekey|readkey|enckey|spacekey/i;
const REDACTED = "[redacted]";

const COLORS: Readonly<Record<LogLevel, number>> = { debug: 90, info: 36, warn: 33, error: 31 };

/** Formats a log line, line break included. With a stack it is several lines. */
export function formatLine(line: LogLine, format: LogFormat): string {
  return format === "json" ? jsonLine(line) : textLine(line, format === "colorized");
}

function jsonLine({ time, level, message, fields }: LogLine): string {
  const own: Record<string, unknown> = { time: time.toISOString(), level, message };
  for (const [name, value] of Object.entries(fields)) own[name in own ? `${name}_` : name] = plain(name, value);
  return `${JSON.stringify(own, replaceUnprintable)}\n`;
}

function textLine({ time, level, message, fields }: LogLine, colors: boolean): string {
  const color = (code: number, text: string) => (colors ? `\x1b[${code}m${text}\x1b[0m` : text);
  let stack = "";
  const parts = [color(90, time.toISOString()), color(COLORS[level], level.toUpperCase().padEnd(5)), oneLine(message)];
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof Error) stack += `${indent(stackOf(value))}\n`;
    else if (value !== undefined) parts.push(`${color(90, `${name}=`)}${textValue(plain(name, value))}`);
  }
  return `${parts.join(" ")}\n${stack}`;
}

function textValue(value: unknown): string {
  if (typeof value === "string" && /^[\w.:/@+-]+$/.test(value)) return value;
  return JSON.stringify(value, replaceUnprintable) ?? String(value);
}

/** A message stays one line whatever it quotes, so that nobody can inject lines into the log. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is being taken out.
  return text.replace(/[\x00-\x1f\x7f\x9b]/g, (character) => JSON.stringify(character).slice(1, -1));
}

function plain(name: string, value: unknown): unknown {
  if (SECRET_NAME.test(name)) return REDACTED;
  if (value instanceof Error) return { name: value.name, message: value.message, stack: stackOf(value) };
  return value;
}

function replaceUnprintable(name: string, value: unknown): unknown {
  if (name !== "" && SECRET_NAME.test(name)) return REDACTED;
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  return value;
}

/** The stack, followed by the stacks of its causes. */
function stackOf(error: Error): string {
  const own = error.stack ?? `${error.name}: ${error.message}`;
  return error.cause instanceof Error && error.cause !== error ? `${own}\ncaused by ${stackOf(error.cause)}` : own;
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${oneLine(line)}`)
    .join("\n");
}
