/** Keeps unsaved text in the browser until it is saved, so that leaving the view loses nothing. */
import { tabLock } from "../stream/hub-locks.ts";
import { TAB } from "../stream/tab-id.ts";

export interface Draft {
  text: string;
  /** The document on which it is based. */
  base: string;
}

interface KeptDraft extends Draft {
  keptAtMs: number;
}

export interface DraftStore {
  /** The draft of this tab, or else the newest draft of a closed tab. */
  load(): Promise<KeptDraft | undefined>;
  /** Stores the draft soon; undefined: there is no draft any more. */
  keep(draft: Draft | undefined): void;
  /** Stores it now. */
  flush(): void;
}

const PREFIX = "svc draft";
const KEEP_DELAY_MS = 300;

/** Drafts for which the browser has no room live as long as the page. */
const textByKey = new Map<string, string>();

export function createDraftStore(objectId: string): DraftStore {
  const ownKey = `${PREFIX} ${objectId} ${TAB}`;
  let waiting: { draft: Draft | undefined } | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush(): void {
    clearTimeout(timer);
    if (!waiting) return;
    const { draft } = waiting;
    waiting = undefined;
    if (draft) write(ownKey, JSON.stringify({ ...draft, keptAtMs: Date.now() } satisfies KeptDraft));
    else remove(ownKey);
  }

  return {
    async load() {
      const own = read(ownKey);
      if (own) return own;
      const [key, orphan] = (await orphans(objectId)).toSorted(([, a], [, b]) => b.keptAtMs - a.keptAtMs)[0] ?? [];
      if (key === undefined || orphan === undefined) return undefined;
      write(ownKey, JSON.stringify(orphan));
      remove(key);
      return orphan;
    },
    keep(draft) {
      waiting = { draft };
      clearTimeout(timer);
      if (draft) timer = setTimeout(flush, KEEP_DELAY_MS);
      else flush();
    },
    flush,
  };
}

/** Drafts of an object that closed tabs left. A draft of an open tab belongs to that tab. */
async function orphans(objectId: string): Promise<[key: string, draft: KeptDraft][]> {
  const prefix = `${PREFIX} ${objectId} `;
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  if (keys.length === 0) return [];
  const { held = [] } = "locks" in navigator ? await navigator.locks.query() : {};
  const live = new Set(held.map(({ name }) => name));
  return keys
    .filter((key) => !live.has(tabLock(key.slice(prefix.length))))
    .flatMap((key) => {
      const draft = read(key);
      return draft ? [[key, draft] as [string, KeptDraft]] : [];
    });
}

function read(key: string): KeptDraft | undefined {
  const text = textByKey.get(key) ?? localStorage.getItem(key);
  return text === null || text === undefined ? undefined : (JSON.parse(text) as KeptDraft);
}

function write(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
    textByKey.delete(key);
  } catch {
    textByKey.set(key, text);
  }
}

function remove(key: string): void {
  textByKey.delete(key);
  localStorage.removeItem(key);
}
