import type { Log } from "../base/log.ts";

/** The setting that would allow a refused page's origin; undefined for origins that no setting can allow. */
export function allowingSetting(origin: string): string | undefined {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(origin) ? "http.allowedOrigins" : undefined;
}

const AGAIN_MS = 60_000;
/** Most origins warned of in a minute, because a page can make up as many as it likes. */
const ORIGINS_MAX = 20;

/** Warns of refused origins, of each once a minute, so that the developer of a page sees why it gets nothing. */
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
