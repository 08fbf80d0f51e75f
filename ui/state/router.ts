/** The page's address: `#/spaces/<id>/objects?filter=…`. It holds everything to which a person would want to return. */
import { computed, signal } from "@preact/signals";

export interface Route {
  /** Decoded segments. */
  segments: readonly string[];
  params: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  const before = pageOf(hash.peek());
  hash.value = location.hash;
  if (pageOf(location.hash) !== before) scrollTo(0, 0);
});

/** The part of an address that says what is viewed, without how: a space's object, a section. */
function pageOf(address: string): string {
  return (address.split("?", 1)[0] ?? "").split("/").slice(0, 5).join("/");
}

export const route = computed<Route>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { segments: path.split("/").filter(Boolean).map(decodeSegment), params: new URLSearchParams(query) };
});

export function href(...segments: string[]): string {
  return `#/${segments.map(encodeURIComponent).join("/")}`;
}

export function go(...segments: string[]): void {
  location.hash = href(...segments);
}

/** Opens an address with parameters. */
export function goWith(params: Readonly<Record<string, string>>, ...segments: string[]): void {
  location.hash = `${href(...segments)}?${new URLSearchParams(params)}`;
}

/** Changes parameters of the current address; undefined and empty ones are removed. */
export function setParams(change: Readonly<Record<string, string | undefined>>): void {
  const { segments, params } = route.peek();
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(change)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const query = next.toString();
  location.hash = `${href(...segments)}${query ? `?${query}` : ""}`;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
