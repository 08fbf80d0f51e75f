/** Removes secrets from texts: a program, a trace or an error must never contain them. */
export type Redact = (text: string) => string;

/** Shorter secrets occur in texts by chance. */
const MIN_CHARS = 6;

export function createRedact(secrets: readonly string[]): Redact {
  // Inside JSON a secret is escaped.
  const forms = secrets
    .filter((secret) => secret.length >= MIN_CHARS)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]);
  const unique = [...new Set(forms)].sort((one, other) => other.length - one.length);
  return (text) => unique.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
}
