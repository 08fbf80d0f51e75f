/** The new account's phrase, shown only this once, until its owner proves to have written it down. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { newMnemonic } from "../state/session.ts";

export function MnemonicPanel({ mnemonic }: { mnemonic: string }) {
  const words = mnemonic.split(" ");
  const asking = useSignal(false);
  useEffect(() => {
    // Leaving now would lose the words permanently, so the browser asks first.
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", hold);
    return () => removeEventListener("beforeunload", hold);
  }, []);
  return asking.value ? <WordCheck words={words} asking={asking} /> : <WordList words={words} asking={asking} />;
}

interface StepProps {
  words: readonly string[];
  asking: Signal<boolean>;
}

function WordList({ words, asking }: StepProps) {
  const copied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(words.join(" "));
    copied.value = true;
  };
  return (
    <section class="card mnemonic" aria-labelledby="mnemonic-title">
      <h1 id="mnemonic-title">Write these words down now</h1>
      <div class="note note-warning" role="alert">
        <p>
          <strong>They are shown only this once.</strong> Whoever has them has your account; without them nobody, not
          even you, can restore it. Keep them on paper, away from this machine. Do not reload or close this page before
          you have them: they would be lost for good.
        </p>
      </div>
      <ol class="words">
        {words.map((word, index) => (
          // A phrase may contain a word twice, and it never changes.
          <li key={index}>
            <code>{word}</code>
          </li>
        ))}
      </ol>
      <div class="row">
        <button
          type="button"
          class="primary"
          onClick={() => {
            asking.value = true;
          }}
        >
          I have written them down
        </button>
        <button type="button" onClick={() => void copy()}>
          {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
    </section>
  );
}

/** Asks for two of the words while the words are hidden. */
function WordCheck({ words, asking }: StepProps) {
  const asked = useMemo(() => twoOf(words.length), [words.length]);
  const answers = [useSignal(""), useSignal("")] as const;
  const wrong = useSignal(false);
  const submit = (event: Event) => {
    event.preventDefault();
    wrong.value = asked.some((index, nth) => answers[nth]?.value.trim().toLowerCase() !== words[index]);
    if (!wrong.value) newMnemonic.value = undefined;
  };
  return (
    <form class="card mnemonic" aria-labelledby="check-title" onSubmit={submit}>
      <h1 id="check-title">Two of the words, from your paper</h1>
      {asked.map((index, nth) => (
        <div key={index}>
          <label for={`word-${nth}`}>Word {index + 1}</label>
          <input
            id={`word-${nth}`}
            required
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            value={answers[nth]}
            onInput={(event) => {
              const answer = answers[nth];
              if (answer) answer.value = event.currentTarget.value;
            }}
          />
        </div>
      ))}
      {wrong.value && (
        <div class="note note-error" role="alert">
          <p>These are not the words. Look at your paper, or at the words once more.</p>
        </div>
      )}
      <div class="row">
        <button type="submit" class="primary">
          Continue
        </button>
        <button
          type="button"
          onClick={() => {
            asking.value = false;
          }}
        >
          Show the words again
        </button>
      </div>
    </form>
  );
}

/** Two different places, in order. */
function twoOf(count: number): [number, number] {
  const first = Math.floor(Math.random() * count);
  const other = Math.floor(Math.random() * (count - 1));
  const second = other >= first ? other + 1 : other;
  return [Math.min(first, second), Math.max(first, second)];
}
