/** A button for what cannot be undone: the first press asks, the second does it. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

export interface ConfirmButtonProps {
  label: string;
  /** The label for the second press. */
  question: string;
  disabled?: boolean;
  onConfirm: () => void;
}

/** The question must have been visible for this long, without a press, before a press confirms it. */
const READ_MS = 600;

export function ConfirmButton({ label, question, disabled = false, onConfirm }: ConfirmButtonProps) {
  const asked = useSignal(false);
  const readable = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const reset = () => {
    clearTimeout(timer.current);
    asked.value = readable.value = false;
  };
  /**
   * A double click, or a key that is held, opens the question but does not confirm it, because the question appears under
   * the pointer.
   */
  const ask = () => {
    clearTimeout(timer.current);
    asked.value = true;
    readable.value = false;
    timer.current = setTimeout(() => {
      readable.value = true;
    }, READ_MS);
  };
  return (
    <button
      type="button"
      class={asked.value ? "danger" : "plain"}
      disabled={disabled}
      aria-disabled={asked.value && !readable.value}
      onBlur={reset}
      onClick={() => {
        if (!readable.peek()) return ask();
        reset();
        onConfirm();
      }}
    >
      {asked.value ? question : label}
    </button>
  );
}
