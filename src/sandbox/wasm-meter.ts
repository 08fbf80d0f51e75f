/**
 * Adds fuel metering to a wasm module (core specification 2.0, binary format § 5): every function entry and every loop
 * iteration takes one unit from an exported, mutable i64; `memory.copy` and `memory.fill` take one more for every 64
 * bytes. Below zero the module calls one of its own imports, which the host has replaced: the host refills or throws. The
 * result depends only on the input, so fuel is the same wherever the same module runs.
 */

import {
  type ByteSink,
  countOf,
  createByteSink,
  createReader,
  need,
  type Reader,
  readSections,
  SECTION,
  type Section,
} from "./wasm-bytes.ts";

/** The exported global that holds the rest of the slice. */
export const FUEL_GLOBAL = "fuel";
/**
 * The import that is called with {@link FUEL_HOOK_ARGUMENT} when the slice is used up. A new import would renumber every
 * function; this one has the right type, and a program has no files to close.
 */
const HOOK_MODULE = "wasi_snapshot_preview1";
export const FUEL_HOOK = "fd_close";
export const FUEL_HOOK_ARGUMENT = -1;
/** 2^6 bytes of bulk memory work count as one iteration of a loop. */
const BULK_SHIFT = 6;

const VOID_BLOCK = 0x40;
const I32 = 0x7f;

/** Indexes to which instrumented code refers. */
interface Indexes {
  readonly fuelGlobal: number;
  readonly hook: number;
  readonly copyFunction: number;
  readonly fillFunction: number;
}

/** Instruments a module. Throws on whatever it does not know, so that nothing runs unmetered. */
export function meterWasm(source: Uint8Array): Uint8Array {
  const sections = readSections(source);
  const imports = readImports(source, need(sections, SECTION.import));
  const functionCount = imports.functions + countOf(source, need(sections, SECTION.function));
  const indexes: Indexes = {
    fuelGlobal: imports.globals + countOf(source, need(sections, SECTION.global)),
    hook: imports.hook,
    copyFunction: functionCount,
    fillFunction: functionCount + 1,
  };
  const bulkType = countOf(source, need(sections, SECTION.type));
  const out = createByteSink(source.length * 2);
  out.copy(source, 0, 8);
  for (const section of sections) {
    const content = createByteSink(section.end - section.start + 64);
    rewriteSection(source, section, content, indexes, bulkType);
    out.byte(section.id);
    out.u32(content.length);
    out.bytes(content.done());
  }
  return out.done();
}

function rewriteSection(source: Uint8Array, section: Section, out: ByteSink, indexes: Indexes, bulkType: number): void {
  const reader = createReader(source, section.start);
  const withCount = (added: number): void => {
    out.u32(reader.u32() + added);
    out.copy(source, reader.at(), section.end);
  };
  switch (section.id) {
    case SECTION.type:
      withCount(1);
      out.bytes([0x60, 3, I32, I32, I32, 0]);
      return;
    case SECTION.function:
      withCount(2);
      out.u32(bulkType);
      out.u32(bulkType);
      return;
    case SECTION.global:
      withCount(1);
      out.bytes([0x7e, 1, 0x42]); // i64, mutable: the initial value is enough for the engine's own start
      out.s32(0x3fffffff);
      out.byte(0x0b);
      return;
    case SECTION.export: {
      withCount(1);
      const name = new TextEncoder().encode(FUEL_GLOBAL);
      out.u32(name.length);
      out.bytes(name);
      out.byte(3);
      out.u32(indexes.fuelGlobal);
      return;
    }
    case SECTION.code:
      rewriteCode(source, section, out, indexes);
      return;
    default:
      out.copy(source, section.start, section.end);
  }
}

function rewriteCode(source: Uint8Array, section: Section, out: ByteSink, indexes: Indexes): void {
  const reader = createReader(source, section.start);
  const count = reader.u32();
  out.u32(count + 2);
  for (let index = 0; index < count; index++) {
    const size = reader.u32();
    const end = reader.at() + size;
    const body = createByteSink(size * 2 + 32);
    rewriteBody(source, reader, end, body, indexes);
    out.u32(body.length);
    out.bytes(body.done());
  }
  for (const bulk of [
    [0xfc, 0x0a, 0, 0],
    [0xfc, 0x0b, 0],
  ]) {
    // biome-ignore format: two instructions
    const body = createByteSink(64);
    body.u32(0); // no locals
    chargeForBytes(body, indexes);
    for (const parameter of [0, 1, 2]) body.bytes([0x20, parameter]);
    body.bytes(bulk);
    body.byte(0x0b);
    out.u32(body.length);
    out.bytes(body.done());
  }
}

/**
 * Copies a function body, charges at its entry and at the head of each loop, and redirects bulk work to the counted
 * functions.
 */
function rewriteBody(source: Uint8Array, reader: Reader, end: number, out: ByteSink, indexes: Indexes): void {
  const start = reader.at();
  for (let groups = reader.u32(); groups > 0; groups--) {
    reader.u32();
    reader.byte();
  }
  let copied = start;
  const flush = (until: number): void => {
    out.copy(source, copied, until);
    copied = until;
  };
  flush(reader.at());
  chargeOne(out, indexes);
  while (reader.at() < end) {
    const at = reader.at();
    const opcode = reader.byte();
    const bulk = skipImmediates(opcode, reader);
    if (opcode === 0x03) {
      flush(reader.at());
      chargeOne(out, indexes);
    } else if (bulk === 0x0a || bulk === 0x0b) {
      flush(at);
      out.byte(0x10);
      out.u32(bulk === 0x0a ? indexes.copyFunction : indexes.fillFunction);
      copied = reader.at();
    }
  }
  if (reader.at() !== end) throw new Error("a function does not end where it says");
  flush(end);
}

/** Skips the immediates of an instruction; returns the second opcode of those that begin with 0xfc. */
function skipImmediates(opcode: number, reader: Reader): number | undefined {
  switch (true) {
    case opcode === 0x02 || opcode === 0x03 || opcode === 0x04:
      reader.leb(); // a block type is one byte or a signed index, either way one LEB128
      return undefined;
    case opcode === 0x0c || opcode === 0x0d || opcode === 0x10 || opcode === 0x41 || opcode === 0x42:
    case (opcode >= 0x20 && opcode <= 0x26) || opcode === 0xd0 || opcode === 0xd2:
    case opcode === 0x3f || opcode === 0x40:
      reader.leb();
      return undefined;
    case opcode === 0x0e:
      for (let labels = reader.u32(); labels >= 0; labels--) reader.leb();
      return undefined;
    case opcode === 0x11 || (opcode >= 0x28 && opcode <= 0x3e):
      reader.leb();
      reader.leb();
      return undefined;
    case opcode === 0x1c:
      for (let types = reader.u32(); types > 0; types--) reader.byte();
      return undefined;
    case opcode === 0x43:
      reader.skip(4);
      return undefined;
    case opcode === 0x44:
      reader.skip(8);
      return undefined;
    case opcode === 0xfc:
      return skipPrefixed(reader);
    case opcode <= 0x01 || opcode === 0x05 || opcode === 0x0b || opcode === 0x0f || opcode === 0x1a || opcode === 0x1b:
    case (opcode >= 0x45 && opcode <= 0xc4) || opcode === 0xd1:
      return undefined;
    default:
      throw new Error(`the instruction 0x${opcode.toString(16)} cannot be metered`);
  }
}

function skipPrefixed(reader: Reader): number {
  const second = reader.u32();
  if (second <= 7) return second; // saturating truncations
  if (second === 0x0a) reader.skip(2);
  else if (second === 0x0b) reader.skip(1);
  else throw new Error(`the instruction 0xfc 0x${second.toString(16)} cannot be metered`);
  return second;
}

function chargeOne(out: ByteSink, indexes: Indexes): void {
  out.byte(0x23);
  out.u32(indexes.fuelGlobal);
  out.bytes([0x42, 1, 0x7d]); // i64.const 1, i64.sub
  refillBelowZero(out, indexes);
}

function chargeForBytes(out: ByteSink, indexes: Indexes): void {
  out.byte(0x23);
  out.u32(indexes.fuelGlobal);
  out.bytes([0x20, 2, 0xad, 0x42, BULK_SHIFT, 0x88, 0x7d]); // local 2 as i64, i64.shr_u, i64.sub
  refillBelowZero(out, indexes);
}

function refillBelowZero(out: ByteSink, indexes: Indexes): void {
  out.byte(0x24);
  out.u32(indexes.fuelGlobal);
  out.byte(0x23);
  out.u32(indexes.fuelGlobal);
  out.bytes([0x42, 0, 0x53, 0x04, VOID_BLOCK, 0x41]); // i64.const 0, i64.lt_s, if, i32.const
  out.s32(FUEL_HOOK_ARGUMENT);
  out.byte(0x10);
  out.u32(indexes.hook);
  out.bytes([0x1a, 0x0b]); // drop, end
}

function readImports(source: Uint8Array, section: Section): { functions: number; globals: number; hook: number } {
  const reader = createReader(source, section.start);
  const name = (): string => {
    const size = reader.u32();
    const text = new TextDecoder().decode(source.subarray(reader.at(), reader.at() + size));
    reader.skip(size);
    return text;
  };
  let functions = 0;
  let globals = 0;
  let hook: number | undefined;
  for (let count = reader.u32(); count > 0; count--) {
    const [module, field, kind] = [name(), name(), reader.byte()];
    if (kind === 0) {
      if (module === HOOK_MODULE && field === FUEL_HOOK) hook = functions;
      functions++;
      reader.u32();
    } else if (kind === 3) {
      globals++;
      reader.skip(2);
    } else throw new Error(`the import ${module}.${field} is neither a function nor a global`);
  }
  if (hook === undefined) throw new Error(`the module does not import ${HOOK_MODULE}.${FUEL_HOOK}`);
  return { functions, globals, hook };
}
