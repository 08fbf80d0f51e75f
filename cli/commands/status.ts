import { command } from "./command.ts";

export const status = command({ summary: "Show the server's health", route: "GET /v1/health" });

export const stop = command({ summary: "Stop the server once its requests are done", route: "POST /v1/shutdown" });
