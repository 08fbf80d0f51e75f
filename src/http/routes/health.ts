import { VERSION_STRING } from "../../base/version.ts";
import { type DeviceCopied, Health } from "../../protocol/meta.ts";
import { openRoute, type Route } from "../route.ts";

export const healthRoutes: Route[] = [
  openRoute({
    method: "GET",
    path: "/v1/health",
    id: "getHealth",
    tag: "Meta",
    summary: "State of the server",
    description:
      "Works unauthorized. `bootstrapping` covers only the one-shot boot pass, not the convergence of a space.",
    responses: {
      200: {
        description: "The server runs",
        schema: Health,
        example: {
          status: "ok",
          version: VERSION_STRING,
          startedAt: "2026-01-31T09:30:00.000Z",
          account: "",
          bootstrapping: false,
          controlUrl: "http://127.0.0.1:7010",
        },
      },
    },
    handler: async ({ host, server }) => {
      const copied = host.engine?.deviceCopied();
      const control = server.controlAddress();
      const unfinished = host.engine?.unfinishedSpaces() ?? [];
      const warnings = [
        ...(copied ? [{ code: "device.copied", message: copiedText(copied) }] : []),
        ...(unfinished.length > 0 ? [{ code: "space.unfinished", message: unfinishedText(unfinished) }] : []),
      ];
      return {
        status: "ok",
        version: VERSION_STRING,
        startedAt: server.startedAt.toISOString(),
        account: host.engine?.accountId ?? "",
        bootstrapping: host.engine?.bootstrapping() ?? false,
        ...(control === undefined ? {} : { controlUrl: `http://${control}` }),
        ...(host.engine?.push ? { push: true as const } : {}),
        ...(warnings.length > 0 ? { warnings } : {}),
      };
    },
  }),
];

const copiedText = ({ where, since, remedy }: DeviceCopied): string =>
  `Another server runs with this device's own key (met on the ${where === "lan" ? "LAN" : "network"} since ${since}): one of the two data roots is a copy of the other. Remedy: ${remedy}`;

function unfinishedText(spaceIds: readonly string[]): string {
  return `Making these spaces was interrupted and failed since; it is tried again, the log says why it fails: ${spaceIds.join(", ")}`;
}
