import type { Route } from "../route.ts";
import { programRoutes } from "./programs.ts";
import { runRoutes } from "./runs.ts";
import { triggerRoutes } from "./triggers.ts";

/** The runtime's control API, which has its own listener. */
export const CONTROL_ROUTES: readonly Route[] = [...triggerRoutes, ...runRoutes, ...programRoutes];
