import { href } from "../state/router.ts";

export interface Tab {
  title: string;
  /** Segments of its address. */
  to: readonly string[];
  current: boolean;
}

export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ title, to, current }) => (
        <a key={title} href={href(...to)} {...(current ? { "aria-current": "page" as const } : {})}>
          {title}
        </a>
      ))}
    </nav>
  );
}
