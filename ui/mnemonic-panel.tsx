/** The new account's phrase, shown this once, until its owner says it is written down. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { newMnemonic } from "./session.ts";

export function MnemonicPanel({ mnemonic }: { mnemonic: string }) {
  const writtenDown = useSignal(false);
  const copied = useSignal(false);
  useEffect(() => {
    // Leaving now would lose the words for good, so the browser asks first.
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", hold);
    return () => removeEventListener("beforeunload", hold);
  }, []);
  const copy = async () => {
    await navigator.clipboard.writeText(mnemonic);
    copied.value = true;
  };
  return (
    <section class="card mnemonic" aria-labelledby="mnemonic-title">
      <h1 id="mnemonic-title">Write these words down now</h1>
      <div class="note note-warning" role="alert">
        <p>
          <strong>They are shown only this once.</strong> Whoever has them has your account; without them nobody, not
          even you, can restore it. Keep them on paper, away from this machine.
        </p>
      </div>
      <ol class="words">
        {mnemonic.split(" ").map((word, index) => (
          // A phrase may hold a word twice, and never changes.
          <li key={index}>
            <code>{word}</code>
          </li>
        ))}
      </ol>
      <label class="check">
        <input
          type="checkbox"
          checked={writtenDown}
          onChange={(event) => {
            writtenDown.value = event.currentTarget.checked;
          }}
        />
        I have written the twelve words down
      </label>
      <div class="row">
        <button
          type="button"
          class="primary"
          disabled={!writtenDown.value}
          onClick={() => {
            newMnemonic.value = undefined;
          }}
        >
          Continue
        </button>
        <button type="button" onClick={() => void copy()}>
          {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
    </section>
  );
}
