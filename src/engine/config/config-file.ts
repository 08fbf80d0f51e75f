import { existsSync, readFileSync } from "node:fs";
import type { Document, LineCounter, Node, ParsedNode, YAMLMap } from "yaml";
import { StartRefusal } from "../start-refusal.ts";
import { SETTING_KEYS, type SettingKey } from "./config-keys.ts";

const MAX_FILE_BYTES = 1 << 20;

/** One setting of the file, and its place there. */
export interface FileEntry {
  readonly raw: unknown;
  /** `<file>:<line>`. */
  readonly source: string;
}

/**
 * Reads a configuration file: setting key → value as written. Returns `undefined` when there is no such file. Refuses
 * (StartRefusal naming file and line) text that is not YAML, unknown keys, and keys given twice.
 */
export async function readConfigFile(file: string): Promise<Map<string, FileEntry> | undefined> {
  const text = readText(file);
  if (text === undefined) return undefined;
  const yaml = await import("yaml");
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const fault = document.errors[0];
  if (fault) throw new StartRefusal(`${file}:${lines.linePos(fault.pos[0]).line}: ${fault.message}`);
  return new FileReader(yaml, file, document, lines).read();
}

function readText(file: string): string | undefined {
  // Most directories have no file, and the first error that is made costs 2 ms: its stack is read from the source map.
  if (!existsSync(file)) return undefined;
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new StartRefusal(`${file} cannot be read: ${(error as Error).message}`);
  }
  if (bytes.length > MAX_FILE_BYTES)
    throw new StartRefusal(`${file} is larger than ${MAX_FILE_BYTES} bytes, which no configuration is`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new StartRefusal(`${file} is not UTF-8 text`);
  }
}

class FileReader {
  private readonly yaml: typeof import("yaml");
  private readonly file: string;
  private readonly document: Document<ParsedNode>;
  private readonly lines: LineCounter;
  private readonly entries = new Map<string, FileEntry>();

  constructor(yaml: typeof import("yaml"), file: string, document: Document<ParsedNode>, lines: LineCounter) {
    this.yaml = yaml;
    this.file = file;
    this.document = document;
    this.lines = lines;
  }

  read(): Map<string, FileEntry> {
    const root = this.resolve(this.document.contents);
    if (root === undefined) return this.entries;
    if (!this.yaml.isMap(root)) throw this.refusal(root, "the file must be a map of settings");
    this.walk(root, "");
    return this.entries;
  }

  private walk(map: YAMLMap, prefix: string): void {
    for (const pair of map.items) {
      const key = pair.key as Node;
      const name = this.yaml.isScalar(key) ? String(key.value) : "";
      const path = prefix === "" ? name : `${prefix}.${name}`;
      const value = this.resolve(pair.value as Node | null);
      if (SETTING_KEYS.includes(path as SettingKey)) this.add(path, key, value);
      else if (SETTING_KEYS.some((known) => known.startsWith(`${path}.`))) this.descend(path, key, value);
      else throw this.refusal(key, `unknown setting ${path}${suggestion(path)}`);
    }
  }

  private descend(path: string, key: Node, value: Node | undefined): void {
    if (value === undefined) return;
    if (!this.yaml.isMap(value)) throw this.refusal(key, `${path} must be a map of settings`);
    this.walk(value, path);
  }

  private add(path: string, key: Node, value: Node | undefined): void {
    if (this.entries.has(path)) throw this.refusal(key, `${path} is given twice`);
    if (value === undefined) return;
    const raw: unknown = value.toJS(this.document, { maxAliasCount: 10 });
    this.entries.set(path, { raw, source: this.lineOf(key) });
  }

  /** The node an alias stands for; undefined for nothing and for null, which leave a setting unset. */
  private resolve(node: Node | null): Node | undefined {
    const target = this.yaml.isAlias(node) ? node.resolve(this.document) : node;
    if (!target || (this.yaml.isScalar(target) && target.value === null)) return undefined;
    return target;
  }

  private refusal(node: Node, message: string): StartRefusal {
    return new StartRefusal(`${this.lineOf(node)}: ${message}`);
  }

  private lineOf(node: Node): string {
    return `${this.file}:${node.range ? this.lines.linePos(node.range[0]).line : 1}`;
  }
}

/** Names the setting that was probably meant: one with the same letters in another case, or with the same last word. */
function suggestion(path: string): string {
  const wanted = path.toLowerCase();
  const near =
    SETTING_KEYS.find((key) => key.toLowerCase() === wanted) ??
    SETTING_KEYS.find((key) => key.toLowerCase().endsWith(`.${wanted}`));
  return near ? `; did you mean ${near}?` : "";
}
