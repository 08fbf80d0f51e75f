/**
 * How often a test goes through what is random (histories, worlds, kills, losses of power): as often as the suite has time
 * for, or as often as `ROUNDS` says, for a long run of one file by hand.
 */
export function rounds(inSuite: number): number {
  const given = process.env["ROUNDS"];
  if (given === undefined) return inSuite;
  const count = Number(given);
  if (!Number.isSafeInteger(count) || count < 1) throw new Error(`ROUNDS is a whole number from 1 on, not ${given}`);
  return count;
}
