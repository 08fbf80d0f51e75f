/**
 * Sort keys between which there is always room: fractional indexing over base 62, compared bytewise (as UTF-8). A key is
 * a whole part, whose first letter says how many digits it has (`a` 1 … `z` 26 upward, `Z` 1 … `A` 26 downward), and a
 * fraction. Appending counts the whole part up, so keys stay short; inserting halves a gap. Every key has random digits, those
 * of a run the same ones, so two replicas inserting at one place make different keys and their runs do not mix. Keys written by others may be any string: they are
 * taken as they come, and where nothing fits between two of them the answer says so.
 */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE = DIGITS.length;
/** 62^4: about 15 million endings. Of 170 keys made at one place, two are the same in one case of a thousand. */
const JITTER_DIGITS = 4;
/** A longer key is not made; its neighbours get new keys instead. */
export const MAX_KEY_CHARS = 120;

/** Uniform in [0, 1). */
export type Random = () => number;

/** Compares keys by their UTF-8 bytes: negative, 0 or positive. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return byteRank(left) - byteRank(right);
  }
  return a.length - b.length;
}

/** Orders UTF-16 units with surrogates above the rest of their plane, which is the order of UTF-8 bytes. */
function byteRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x2000 : unit >= 0xe000 ? unit - 0x800 : unit;
}

/**
 * Makes a key between `before` and `after`; an absent bound is open. Returns undefined when nothing fits: the bounds are
 * equal or in the wrong order, no key of printable digits lies between them, or it would exceed `MAX_KEY_CHARS`.
 */
export function keyBetween(before: string | undefined, after: string | undefined, random: Random): string | undefined {
  const key = makeKey(before, after, random);
  if (key === undefined || key.length > MAX_KEY_CHARS) return undefined;
  // The bounds may be anything, so the result is checked.
  if (before !== undefined && compareKeys(before, key) >= 0) return undefined;
  if (after !== undefined && compareKeys(key, after) >= 0) return undefined;
  return key;
}

/**
 * `count` keys in ascending order between two bounds; undefined when they do not fit. They share their random digits and
 * count on behind them, so that a run stays together when others put theirs at the same place meanwhile.
 */
export function keysBetween(
  before: string | undefined,
  after: string | undefined,
  count: number,
  random: Random,
): string[] | undefined {
  return runBetween(before, after, count, random) ?? spreadBetween(before, after, count, random);
}

function runBetween(
  before: string | undefined,
  after: string | undefined,
  count: number,
  random: Random,
): string[] | undefined {
  if (count < 2) return undefined;
  const stem = keyBetween(before, after, random);
  if (stem === undefined) return undefined;
  const width = Math.ceil(Math.log(count + 1) / Math.log(BASE));
  // The digit behind the count leaves room on both sides of each key.
  const keys = Array.from({ length: count }, (_, index) => stem + counted(index, width) + DIGITS[BASE >> 1]!);
  const last = keys.at(-1)!;
  return last.length <= MAX_KEY_CHARS && (after === undefined || compareKeys(last, after) < 0) ? keys : undefined;
}

/** A number in so many digits. */
function counted(value: number, width: number): string {
  let text = "";
  for (let rest = value; text.length < width; rest = Math.floor(rest / BASE)) text = DIGITS[rest % BASE]! + text;
  return text;
}

/** The same where no run has room: each key by itself, spread evenly. */
function spreadBetween(
  before: string | undefined,
  after: string | undefined,
  count: number,
  random: Random,
): string[] | undefined {
  const keys = new Array<string>(count);
  // Open above: counting up keeps keys short.
  if (after === undefined) {
    let last = before;
    for (let i = 0; i < count; i++) {
      last = keyBetween(last, undefined, random);
      if (last === undefined) return undefined;
      keys[i] = last;
    }
    return keys;
  }
  const fill = (from: number, to: number, low: string | undefined, high: string | undefined): boolean => {
    if (from >= to) return true;
    const middle = (from + to) >> 1;
    const key = keyBetween(low, high, random);
    if (key === undefined) return false;
    keys[middle] = key;
    return fill(from, middle, low, key) && fill(middle + 1, to, key, high);
  };
  return fill(0, count, before, after) ? keys : undefined;
}

/** New keys for inserted items, and for neighbours that had to give way. */
export interface KeyPlan {
  readonly keys: string[];
  /** Existing keys to replace, as index into the given keys → new key. Usually empty. */
  readonly moved: ReadonlyMap<number, string>;
}

/**
 * Makes keys for `count` items to be inserted before `index` of a list whose keys are given in its order. Where they do
 * not fit, it also gives new keys to a growing stretch of neighbours, so it never fails.
 */
export function planKeys(existing: readonly string[], index: number, count: number, random: Random): KeyPlan {
  if (count === 0) return { keys: [], moved: new Map() };
  for (let reach = 0; ; reach = reach === 0 ? 1 : reach * 2) {
    const from = Math.max(0, index - reach);
    const to = Math.min(existing.length, index + reach);
    const all = keysBetween(existing[from - 1], existing[to], count + (to - from), random);
    if (!all) {
      // With both ends open there is always room.
      if (from === 0 && to === existing.length) throw new Error("no position keys between open bounds");
      continue;
    }
    const moved = new Map<number, string>();
    for (let i = from; i < index; i++) moved.set(i, all[i - from]!);
    for (let i = index; i < to; i++) moved.set(i, all[i - from + count]!);
    return { keys: all.slice(index - from, index - from + count), moved };
  }
}

/**
 * Completes the keys of a whole list, in its order; `undefined` marks a key to be made. Existing keys stay unless nothing
 * fits beside them.
 */
export function fillKeys(list: readonly (string | undefined)[], random: Random): string[] {
  const filled = [...list];
  const full: [start: number, end: number][] = [];
  for (let start = 0; start < list.length; start++) {
    if (list[start] !== undefined) continue;
    let end = start + 1;
    while (end < list.length && list[end] === undefined) end++;
    const keys = keysBetween(list[start - 1], list[end], end - start, random);
    for (const [offset, key] of (keys ?? []).entries()) filled[start + offset] = key;
    if (!keys) full.push([start, end]);
    start = end;
  }
  for (const [start, end] of full) giveWay(filled, start, end, random);
  return filled as string[];
}

/** Fills [start, end) of a list, whose other positions may be empty too. Neighbours get new keys where necessary. */
function giveWay(list: (string | undefined)[], start: number, end: number, random: Random): void {
  const taken = [...list.keys()].filter((at) => list[at] !== undefined);
  const index = taken.filter((at) => at < start).length;
  const plan = planKeys(
    taken.map((at) => list[at]!),
    index,
    end - start,
    random,
  );
  for (const [offset, key] of plan.keys.entries()) list[start + offset] = key;
  for (const [moved, key] of plan.moved) list[taken[moved]!] = key;
}

function makeKey(before: string | undefined, after: string | undefined, random: Random): string | undefined {
  if (before === undefined && after === undefined) return `a0${jitter(random)}`;
  if (after === undefined) return keyAfter(before!, random);
  if (before === undefined) return keyBefore(after, random) ?? fractionBetween("", after, random);
  const low = wholePart(before);
  const high = wholePart(after);
  if (low !== undefined && high !== undefined && compareKeys(low, high) < 0) {
    const next = increment(low);
    // There is a whole number between the two.
    if (next !== undefined && compareKeys(next, high) < 0) return next + jitter(random);
  }
  return fractionBetween(before, after, random);
}

function keyAfter(before: string, random: Random): string {
  const whole = wholePart(before);
  const next = whole === undefined ? undefined : increment(whole);
  if (next !== undefined) return next + jitter(random);
  // This is a foreign key: it is below all of ours, or it has to be passed digit by digit.
  if (compareKeys(before, "a0") < 0) return `a0${jitter(random)}`;
  return stepOver(before) + jitter(random);
}

function keyBefore(after: string, random: Random): string | undefined {
  const whole = wholePart(after);
  if (whole === undefined) return compareKeys(after, "a0") > 0 ? `Zz${jitter(random)}` : undefined;
  const previous = decrement(whole);
  return previous === undefined ? undefined : previous + jitter(random);
}

/** Returns a short key that comes after a foreign one at or above `a0`. */
function stepOver(key: string): string {
  // A character above our digits cannot be raised, only extended. The same goes for the highest digit where nothing else
  // is left.
  for (const highest of [0x7b, 0x7a]) {
    let high = 0;
    while (high < key.length && key.charCodeAt(high) >= highest) high++;
    const rest = key.slice(high);
    const raised = compareKeys(rest, "a0") < 0 ? "a0" : raiseForeign(rest);
    if (raised !== undefined) return key.slice(0, high) + raised;
  }
  return key;
}

/** The whole part above a key whose first letter announces a length, but whose digits are missing or foreign. */
function raiseForeign(key: string): string | undefined {
  let whole = key[0]!;
  const length = 1 + (wholeLength(whole) ?? 0);
  while (whole.length < length) {
    const char = key[whole.length];
    if (char !== undefined && !DIGITS.includes(char)) {
      const above = firstDigitAbove(char.charCodeAt(0));
      if (above < BASE) return (whole + DIGITS[above]!).padEnd(length, "0");
      // The digit before it is raised instead.
      return increment(whole.padEnd(length, DIGITS[BASE - 1]!));
    }
    whole += char ?? "0";
  }
  return increment(whole);
}

/** How many digits the whole part has that begins with this letter; undefined for another character. */
function wholeLength(head: string | undefined): number | undefined {
  if (head === undefined) return undefined;
  if (head >= "a" && head <= "z") return head.charCodeAt(0) - 0x60;
  if (head >= "A" && head <= "Z") return 0x5b - head.charCodeAt(0);
  return undefined;
}

/** The whole part of one of our keys; undefined for a foreign key. */
function wholePart(key: string): string | undefined {
  const digits = wholeLength(key[0]);
  if (digits === undefined || key.length < 1 + digits) return undefined;
  for (let i = 1; i <= digits; i++) if (!DIGITS.includes(key[i]!)) return undefined;
  return key.slice(0, 1 + digits);
}

function increment(whole: string): string | undefined {
  const digits = whole.slice(1).split("");
  for (let i = digits.length - 1; i >= 0; i--) {
    const value = DIGITS.indexOf(digits[i]!) + 1;
    if (value < BASE) {
      digits[i] = DIGITS[value]!;
      return whole[0] + digits.join("");
    }
    digits[i] = "0";
  }
  if (whole[0] === "z") return undefined;
  if (whole[0] === "Z") return "a0";
  const head = String.fromCharCode(whole.charCodeAt(0) + 1);
  return head + "0".repeat(wholeLength(head)!);
}

function decrement(whole: string): string | undefined {
  const digits = whole.slice(1).split("");
  for (let i = digits.length - 1; i >= 0; i--) {
    const value = DIGITS.indexOf(digits[i]!) - 1;
    if (value >= 0) {
      digits[i] = DIGITS[value]!;
      return whole[0] + digits.join("");
    }
    digits[i] = DIGITS[BASE - 1]!;
  }
  if (whole[0] === "A") return undefined;
  if (whole[0] === "a") return "Zz";
  const head = String.fromCharCode(whole.charCodeAt(0) - 1);
  return head + DIGITS[BASE - 1]!.repeat(wholeLength(head)!);
}

/**
 * Makes a key between two strings, digit by digit: it follows the lower bound (or, once past it, the upper one) until a
 * digit fits strictly between them. The digit is close to the lower bound, because text grows downwards: the next insert
 * comes after this one more often than before it.
 */
function fractionBetween(before: string, after: string, random: Random): string | undefined {
  let key = "";
  let belowAfter = false;
  let aboveBefore = false;
  for (let i = 0; key.length <= MAX_KEY_CHARS; i++) {
    const low = aboveBefore || i >= before.length ? -1 : before.charCodeAt(i);
    const high = belowAfter ? 0x7b : i < after.length ? after.charCodeAt(i) : -1;
    if (high === -1) return undefined;
    const first = firstDigitAbove(low);
    const room = digitsBelow(high) - first;
    if (room > 0) {
      const offset = Math.floor(random() * Math.max(1, Math.ceil(room / 4)));
      return key + DIGITS[first + offset]! + jitter(random);
    }
    if (low !== -1) {
      key += before[i];
      if (low < high) belowAfter = true;
    } else {
      key += after[i];
      aboveBefore = true;
    }
  }
  return undefined;
}

/** Index of the first digit above a character (all of them for -1). */
function firstDigitAbove(code: number): number {
  let index = 0;
  while (index < BASE && DIGITS.charCodeAt(index) <= code) index++;
  return index;
}

/** How many digits are below a character. */
function digitsBelow(code: number): number {
  let index = 0;
  while (index < BASE && DIGITS.charCodeAt(index) < code) index++;
  return index;
}

/** Random digits. The last one is not the lowest digit, because nothing would fit below that. */
function jitter(random: Random): string {
  let text = "";
  for (let i = 0; i < JITTER_DIGITS; i++) {
    const least = i === JITTER_DIGITS - 1 ? 1 : 0;
    text += DIGITS[least + Math.floor(random() * (BASE - least))]!;
  }
  return text;
}
