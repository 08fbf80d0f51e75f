/** The target of a link in markdown: an object of the space, a web page, or a mail program. */
export type LinkTarget = { objectId: string } | { url: string };

/**
 * Returns undefined for every other scheme and for relative addresses, because what people write must not run in the
 * page.
 */
export function readLinkTarget(target: string): LinkTarget | undefined {
  const objectId = /^svc:\/\/([^/#?]+)$/.exec(target)?.[1];
  if (objectId !== undefined) return { objectId };
  return /^(https?:\/\/|mailto:)/i.test(target) ? { url: target } : undefined;
}
