import type { Signal } from "@preact/signals";

export interface TextFieldProps {
  id: string;
  label: string;
  text: Signal<string>;
  placeholder?: string;
  required?: boolean;
}

/** One line of text with its label. */
export function TextField({ id, label, text, placeholder, required = false }: TextFieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        autocomplete="off"
        required={required}
        value={text}
        {...(placeholder === undefined ? {} : { placeholder })}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
    </div>
  );
}
