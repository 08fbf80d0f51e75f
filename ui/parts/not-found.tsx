import { href } from "../state/router.ts";

/** Shown for an address that leads nowhere. `to`: where to go instead. */
export function NotFound({ to, label }: { to: readonly string[]; label: string }) {
  return (
    <div class="empty">
      <h1>There is nothing here</h1>
      <p>
        <a href={href(...to)}>{label}</a>
      </p>
    </div>
  );
}
