/** Patterns up to this long are left to the engine's own search, whose worst case grows with their length. */
const SHORT_PATTERN = 256;

/** Starts of the non-overlapping occurrences of a non-empty pattern, from the left. Linear time for any input. */
export function findAll(text: string, pattern: string): number[] {
  if (pattern.length > SHORT_PATTERN) {
    return findRuns(text.length, (index) => text.charCodeAt(index), codesOf(pattern));
  }
  const found: number[] = [];
  for (let at = text.indexOf(pattern); at !== -1; at = text.indexOf(pattern, at + pattern.length)) found.push(at);
  return found;
}

/** The same for whole lines: indexes at which a run of lines equal to `pattern` begins. */
export function findLineRuns(lines: readonly string[], pattern: readonly string[]): number[] {
  const numbers = new Map(pattern.map((line, index) => [line, index]));
  const codes = pattern.map((line) => numbers.get(line)!);
  return findRuns(lines.length, (index) => numbers.get(lines[index]!) ?? -1, codes);
}

/** Knuth, Morris and Pratt over numbers. */
function findRuns(length: number, codeAt: (index: number) => number, pattern: ArrayLike<number>): number[] {
  const borders = bordersOf(pattern);
  const found: number[] = [];
  let matched = 0;
  for (let index = 0; index < length; index++) {
    const code = codeAt(index);
    while (matched > 0 && pattern[matched] !== code) matched = borders[matched - 1]!;
    if (pattern[matched] === code) matched++;
    if (matched === pattern.length) {
      found.push(index + 1 - matched);
      matched = 0;
    }
  }
  return found;
}

/** For each prefix, the length of its longest proper prefix that is also its suffix. */
function bordersOf(pattern: ArrayLike<number>): Int32Array {
  const borders = new Int32Array(pattern.length);
  let length = 0;
  for (let index = 1; index < pattern.length; index++) {
    while (length > 0 && pattern[length] !== pattern[index]) length = borders[length - 1]!;
    if (pattern[length] === pattern[index]) length++;
    borders[index] = length;
  }
  return borders;
}

function codesOf(text: string): Uint16Array {
  const codes = new Uint16Array(text.length);
  for (let index = 0; index < text.length; index++) codes[index] = text.charCodeAt(index);
  return codes;
}
