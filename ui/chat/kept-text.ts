import { type ReadonlySignal, useSignal } from "@preact/signals";

export interface KeptText {
  text: ReadonlySignal<string>;
  write(text: string): void;
}

/**
 * A field's text that outlasts the field: leaving the place where it was typed, or loading the page again, loses nothing.
 * It goes with the tab, and once it is empty or equals `initial`.
 */
export function useKeptText(name: string, initial: string): KeptText {
  const key = `svc text ${name}`;
  const text = useSignal(sessionStorage.getItem(key) ?? initial);
  return {
    text,
    // At once, and not in an effect: the field may be gone by the time one runs.
    write(next) {
      text.value = next;
      if (next === initial || next === "") sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, next);
    },
  };
}
