import type { Route } from "./route.ts";
import { authRoutes } from "./routes/auth.ts";
import { healthRoutes } from "./routes/health.ts";
import { shutdownRoutes } from "./routes/shutdown.ts";

/** Every route of the main API, in the order the documentation lists them. One line a resource. */
export const ROUTES: readonly Route[] = [...healthRoutes, ...shutdownRoutes, ...authRoutes];
