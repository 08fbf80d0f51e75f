/** A skipped test carries its reason in its title or its group's: ` [skipped: <reason>]`. */
const REASON = / \[skipped: (?<reason>[^\]]+)\]/;

export function titleWithReason(title: string, reason: string): string {
  return `${title} [skipped: ${reason.replace(/[[\]]/g, "")}]`;
}

/** The reason in a skipped test's title, or undefined if it was skipped without one. */
export function skipReason(title: string): string | undefined {
  return REASON.exec(title)?.groups?.["reason"];
}
