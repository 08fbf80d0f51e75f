import type { Log } from "../base/log.ts";

/** Where a page that is refused would be let in; undefined for origins that no setting can allow. */
export function allowingSetting(origin: string): string | undefined {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(origin) ? "http.allowedOrigins" : undefined;
}

const AGAIN_MS = 60_000;
/** Origins in a minute; a page can make up as many as it likes. */
const ORIGINS_MAX = 20;

/** Warns of refused origins, each once a minute: whoever develops a page sees why it gets nothing. */
export function createRefusedOrigins(log: Log, nowMs: () => number = () => performance.now()) {
  let sinceMs = nowMs();
  const said = new Set<string>();
  return {
    note(origin: string): void {
      if (nowMs() - sinceMs >= AGAIN_MS) {
        sinceMs = nowMs();
        said.clear();
      }
      if (said.has(origin) || said.size >= ORIGINS_MAX) return;
      said.add(origin);
      const setting = allowingSetting(origin);
      log.warn(`refused origin ${origin}; ${setting ? `${setting} would allow it` : "no setting allows it"}`);
    },
  };
}
