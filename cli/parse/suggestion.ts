/** The known word that was probably meant, as the end of an error: `; did you mean space?`, or an empty text. */
export function didYouMean(word: string, known: readonly string[]): string {
  const wanted = word.toLowerCase();
  const near = known
    .map((candidate) => ({ candidate, distance: distanceOf(wanted, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(candidate.length / 3)))
    .sort((a, b) => a.distance - b.distance)[0];
  const [longer] = wanted.length < 2 ? [] : known.filter((candidate) => candidate.startsWith(wanted));
  const meant = near?.candidate ?? longer;
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** The number of letters to change, insert or delete, or neighbours to swap, that turn one word into the other. */
function distanceOf(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    const above = rows[i - 1] as number[];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(
        (above[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (above[j - 1] as number) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (rows[i - 2]?.[j - 2] as number) + 1);
      }
      row.push(least);
    }
    rows.push(row);
  }
  return rows.at(-1)?.at(-1) as number;
}
