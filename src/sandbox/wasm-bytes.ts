/** Reads and writes the binary format of wasm (core specification 2.0, § 5). */
export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  memory: 5,
  global: 6,
  export: 7,
  code: 10,
  data: 11,
  dataCount: 12,
} as const;

export interface Section {
  readonly id: number;
  /** Offset of the section's id. */
  readonly headerStart: number;
  readonly start: number;
  readonly end: number;
}

export interface Reader {
  at(): number;
  byte(): number;
  u32(): number;
  leb(): void;
  skip(count: number): void;
}

export function createReader(source: Uint8Array, from: number): Reader {
  let at = from;
  const byte = (): number => {
    const value = source[at++];
    if (value === undefined) throw new Error("the module ends too early");
    return value;
  };
  return {
    at: () => at,
    byte,
    u32: () => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const next = byte();
        value += (next & 127) * 2 ** shift;
        if (next < 128) return value;
      }
    },
    leb: () => {
      while (byte() >= 128);
    },
    skip: (count) => {
      at += count;
    },
  };
}

export interface ByteSink {
  readonly length: number;
  byte(value: number): void;
  bytes(values: ArrayLike<number>): void;
  copy(source: Uint8Array, start: number, end: number): void;
  u32(value: number): void;
  s32(value: number): void;
  done(): Uint8Array;
}

export function createByteSink(capacity: number): ByteSink {
  let buffer = new Uint8Array(Math.max(16, capacity));
  let length = 0;
  const room = (more: number): void => {
    if (length + more <= buffer.length) return;
    const larger = new Uint8Array(Math.max(buffer.length * 2, length + more));
    larger.set(buffer.subarray(0, length));
    buffer = larger;
  };
  const byte = (value: number): void => {
    room(1);
    buffer[length++] = value;
  };
  const bytes = (values: ArrayLike<number>): void => {
    room(values.length);
    buffer.set(values, length);
    length += values.length;
  };
  return {
    get length() {
      return length;
    },
    byte,
    bytes,
    copy: (source, start, end) => bytes(source.subarray(start, end)),
    u32: (value) => {
      let rest = value;
      while (rest >= 128) {
        byte((rest % 128) | 128);
        rest = Math.floor(rest / 128);
      }
      byte(rest);
    },
    s32: (value) => {
      for (let rest = value; ; rest >>= 7) {
        const last = (rest >= -64 && rest < 64) || false;
        byte((rest & 127) | (last ? 0 : 128));
        if (last) return;
      }
    },
    done: () => buffer.slice(0, length),
  };
}

export function readSections(source: Uint8Array): Section[] {
  const sections: Section[] = [];
  const reader = createReader(source, 8);
  while (reader.at() < source.length) {
    const headerStart = reader.at();
    const id = reader.byte();
    const size = reader.u32();
    sections.push({ id, headerStart, start: reader.at(), end: reader.at() + size });
    reader.skip(size);
  }
  return sections;
}

export function need<S extends Section>(sections: readonly S[], id: number): S {
  const found = sections.find((section) => section.id === id);
  if (!found) throw new Error(`the module has no section ${id}`);
  return found;
}

export function countOf(source: Uint8Array, section: Section): number {
  return createReader(source, section.start).u32();
}
