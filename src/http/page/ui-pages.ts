import type { PageSet } from "./page.ts";
import { uiAssets } from "./ui-assets.ts";

/** The debug page and its parts, all below `/ui`; it loads nothing from anywhere else. */
export const uiPages: PageSet = {
  policy: [
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; "),
  redirects: { "/": "/ui" },
  owns: (pathname) => pathname === "/ui" || pathname.startsWith("/ui/"),
  find: async (pathname) => (await uiAssets()).get(pathname === "/ui/" ? "/ui" : pathname),
};
