import { useSignal } from "@preact/signals";

/** A token to pass on: shown in full and copied with a press; absent where only another device of the account has it. */
export function TokenField({ label, token }: { label: string; token: string | undefined }) {
  const copied = useSignal(false);
  if (token === undefined) return <p class="faint">{label}: its token is on the device of who made it.</p>;
  const copy = async () => {
    await navigator.clipboard.writeText(token);
    copied.value = true;
  };
  return (
    <p class="token">
      <span class="faint">{label}</span> <code>{token}</code>{" "}
      <button type="button" class="plain" onClick={() => void copy()}>
        {copied.value ? "Copied" : "Copy"}
      </button>
    </p>
  );
}
