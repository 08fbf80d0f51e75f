/** A button for what cannot be taken back: the first press asks, the second does it. */
import { useSignal } from "@preact/signals";

export interface ConfirmButtonProps {
  label: string;
  /** What the second press says. */
  question: string;
  disabled?: boolean;
  onConfirm: () => void;
}

export function ConfirmButton({ label, question, disabled = false, onConfirm }: ConfirmButtonProps) {
  const asked = useSignal(false);
  return (
    <button
      type="button"
      class={asked.value ? "danger" : "plain"}
      disabled={disabled}
      onBlur={() => {
        asked.value = false;
      }}
      onClick={() => {
        if (asked.value) onConfirm();
        asked.value = !asked.value;
      }}
    >
      {asked.value ? question : label}
    </button>
  );
}
