import { command, group } from "./command.ts";

export const network = group("The configured network", {
  init: command({
    summary: "Make the network's streams and buckets, where the credentials allow it",
    route: "POST /v1/network/init",
    flags: { replicas: { kind: "integer", hint: "1|3|5", summary: "Copies the network keeps", field: "replicas" } },
  }),
});
