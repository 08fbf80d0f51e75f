/** After this many removals it is cheaper to read all signs anew. */
const MOST_DROPS = 64;

export interface SignScan {
  add(id: number, bits: Uint8Array): void;
  drop(id: number): void;
  /** Returns the `count` ids whose signs differ in the fewest places, and all others that are as near as the last of them. */
  nearest(bits: Uint8Array, count: number, isWanted?: (id: number) => boolean): number[];
  readonly isWorn: boolean;
}

/**
 * Holds the signs of all vectors of an index side by side in memory. One pass over them finds which of many vectors are worth
 * comparing, whereas vec0 goes through a whole block of its own once for every vector that is asked for.
 */
export function createSignScan(dimension: number, capacity: number): SignScan {
  const width = Math.ceil(dimension / 32);
  let signs = new Uint32Array(capacity * width);
  let ids = new Float64Array(capacity);
  let distances = new Uint16Array(capacity);
  let count = 0;
  let drops = 0;
  const one = new Uint32Array(width);

  const grow = (): void => {
    const larger = Math.ceil(ids.length * 1.25) + 1_024;
    const [oldSigns, oldIds] = [signs, ids];
    signs = new Uint32Array(larger * width);
    signs.set(oldSigns);
    ids = new Float64Array(larger);
    ids.set(oldIds);
    distances = new Uint16Array(larger);
  };

  const read = (bits: Uint8Array): Uint32Array => {
    one.fill(0);
    new Uint8Array(one.buffer).set(bits);
    return one;
  };

  /** How many vectors lie at each distance. */
  const measure = (query: Uint32Array, isWanted?: (id: number) => boolean): Uint32Array => {
    const histogram = new Uint32Array(dimension + 1);
    for (let slot = 0, at = 0; slot < count; slot++) {
      let distance = 0;
      for (let i = 0; i < width; i++) distance += ones(signs[at++]! ^ query[i]!);
      if (isWanted && !isWanted(ids[slot]!)) distance = FAR;
      else histogram[distance]!++;
      distances[slot] = distance;
    }
    return histogram;
  };

  return {
    add(id, bits) {
      if (count === ids.length) grow();
      signs.set(read(bits), count * width);
      ids[count++] = id;
    },
    drop(id) {
      if (++drops > MOST_DROPS) return;
      const slot = ids.subarray(0, count).indexOf(id);
      if (slot < 0) return;
      count--;
      signs.copyWithin(slot * width, count * width, (count + 1) * width);
      ids[slot] = ids[count]!;
    },
    nearest(bits, wanted, isWanted) {
      drops = 0;
      const histogram = measure(read(bits), isWanted);
      let farthest = 0;
      for (let found = histogram[0]!; found < wanted && farthest < dimension; found += histogram[farthest]!) farthest++;
      const near: number[] = [];
      for (let slot = 0; slot < count; slot++) if (distances[slot]! <= farthest) near.push(ids[slot]!);
      return near;
    },
    /** Too many vectors were removed: the scan has to be made anew. */
    get isWorn() {
      return drops > MOST_DROPS;
    },
  };
}

const FAR = 0xffff;

/** How many bits of a word are set. */
function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x5555_5555);
  const fours = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}
