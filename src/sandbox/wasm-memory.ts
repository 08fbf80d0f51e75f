import { PAGE_BYTES } from "./program-limits.ts";
import { type ByteSink, createByteSink, createReader, readSections, SECTION, type Section } from "./wasm-bytes.ts";

/** Memory is written in blocks of this many bytes; blocks of zeros are omitted. */
const BLOCK_BYTES = 256;

/** Copies the module with another memory limit, in pages of 64 KiB. */
export function withMaxPages(source: Uint8Array, maxPages: number): Uint8Array {
  return rewrite(source, (section, out) => {
    if (section.id !== SECTION.memory) return false;
    const minPages = readMinPages(source, section);
    if (maxPages < minPages) throw new Error(`the engine needs ${minPages} pages of memory, ${maxPages} are allowed`);
    writeMemory(out, minPages, maxPages);
    return true;
  });
}

/** Copies the module so that its memory starts with the given content and has no limit, and adds a custom section. */
export function withImage(
  source: Uint8Array,
  memory: Uint8Array,
  custom: { readonly name: string; readonly content: Uint8Array },
): Uint8Array {
  return rewrite(source, (section, out) => {
    // This section repeats the number of segments for instructions that no metered module has.
    if (section.id === SECTION.dataCount) return true;
    if (section.id === SECTION.memory) {
      writeMemory(out, memory.length / PAGE_BYTES, MAX_PAGES);
      return true;
    }
    if (section.id !== SECTION.data) return false;
    writeSection(out, SECTION.data, (content) => writeSegments(content, memory));
    writeSection(out, SECTION.custom, (content) => {
      const name = new TextEncoder().encode(custom.name);
      content.u32(name.length);
      content.bytes(name);
      content.bytes(custom.content);
    });
    return true;
  });
}

/** All pages that 32 bits can address. */
const MAX_PAGES = 65_536;

/** Copies a module; `replace` returns whether it has written a section itself. */
function rewrite(source: Uint8Array, replace: (section: Section, out: ByteSink) => boolean): Uint8Array {
  const out = createByteSink(source.length * 2);
  out.copy(source, 0, 8);
  for (const section of readSections(source))
    if (!replace(section, out)) out.copy(source, section.headerStart, section.end);
  return out.done();
}

function writeSection(out: ByteSink, id: number, write: (content: ByteSink) => void): void {
  const content = createByteSink(1024);
  write(content);
  out.byte(id);
  out.u32(content.length);
  out.bytes(content.done());
}

function readMinPages(source: Uint8Array, section: Section): number {
  const reader = createReader(source, section.start);
  if (reader.u32() !== 1) throw new Error("the module has not exactly one memory");
  reader.byte();
  return reader.u32();
}

function writeMemory(out: ByteSink, minPages: number, maxPages: number): void {
  writeSection(out, SECTION.memory, (content) => {
    content.u32(1);
    content.byte(1);
    content.u32(minPages);
    content.u32(maxPages);
  });
}

/** Writes active segments (5.5.14) that turn zeroed memory into the given one. */
function writeSegments(out: ByteSink, memory: Uint8Array): void {
  const runs: { start: number; end: number }[] = [];
  for (let start = 0; start < memory.length; start += BLOCK_BYTES) {
    const end = Math.min(start + BLOCK_BYTES, memory.length);
    if (memory.subarray(start, end).every((byte) => byte === 0)) continue;
    const last = runs.at(-1);
    if (last?.end === start) last.end = end;
    else runs.push({ start, end });
  }
  out.u32(runs.length);
  for (const { start, end } of runs) {
    out.byte(0); // in memory 0
    out.byte(0x41); // i32.const
    out.s32(start);
    out.byte(0x0b);
    out.u32(end - start);
    out.copy(memory, start, end);
  }
}
