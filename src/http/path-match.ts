import type { Route } from "./route.ts";

/** Finds which routes a path belongs to, whatever the method: for 405, Allow, and the guard's exemptions. */
export interface PathMatcher {
  /** Methods that the path accepts, including HEAD and OPTIONS; empty when no route has it. */
  methods(pathname: string): string[];
  find(method: string, pathname: string): Route | undefined;
}

export function createPathMatcher(routes: readonly Route[]): PathMatcher {
  // Made when first asked: most requests have a route, and a start has no use for two hundred patterns.
  let made: { route: Route; pattern: RegExp }[] | undefined;
  const patterns = () => (made ??= routes.map((route) => ({ route, pattern: toPattern(route.path) })));
  return {
    methods(pathname) {
      const methods = new Set<string>();
      for (const { route, pattern } of patterns()) if (pattern.test(pathname)) methods.add(route.method);
      if (methods.has("GET")) methods.add("HEAD");
      if (methods.size > 0) methods.add("OPTIONS");
      return [...methods].sort();
    },
    find(method, pathname) {
      return patterns().find(({ route, pattern }) => route.method === method && pattern.test(pathname))?.route;
    },
  };
}

function toPattern(path: string): RegExp {
  const source = path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:[A-Za-z]+/g, "[^/]+");
  return new RegExp(`^${source}$`);
}
