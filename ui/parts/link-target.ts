/** Where a link in markdown leads: to an object of the space, or out to the web or a mail program. */
export type LinkTarget = { objectId: string } | { url: string };

/** Undefined for every other scheme and for relative addresses: what people write must not run in the page. */
export function readLinkTarget(target: string): LinkTarget | undefined {
  const objectId = /^svc:\/\/([^/#?]+)$/.exec(target)?.[1];
  if (objectId !== undefined) return { objectId };
  return /^(https?:\/\/|mailto:)/i.test(target) ? { url: target } : undefined;
}
