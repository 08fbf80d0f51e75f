import { type ReadonlySignal, useSignal } from "@preact/signals";

export interface KeptText {
  text: ReadonlySignal<string>;
  write(text: string): void;
}

/**
 * A field's text that outlives the field: leaving the view or reloading the page loses nothing. It is dropped with the
 * tab, and once it is empty or equals `initial`.
 */
export function useKeptText(name: string, initial: string): KeptText {
  const key = `svc text ${name}`;
  const text = useSignal(sessionStorage.getItem(key) ?? initial);
  return {
    text,
    // Written at once, not in an effect: the field may be gone before an effect runs.
    write(next) {
      text.value = next;
      if (next === initial || next === "") sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, next);
    },
  };
}
