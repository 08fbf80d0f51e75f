import type { EngineLifecycle } from "./lifecycle.ts";

/** The booted engine of one account, as the routes see it. */
export interface Engine extends EngineLifecycle {}
