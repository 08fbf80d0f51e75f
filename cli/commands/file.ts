import { command, group } from "./command.ts";
import { fileAttach } from "./file-attach.ts";
import { fileDownload } from "./file-download.ts";
import { LIVE_QUERY, QUERY_FLAGS, SUBSCRIBE_FLAGS } from "./shared-flags.ts";

const FILES = "/v1/spaces/:spaceId/files";
const FILE = `${FILES}/:fileId` as const;
const OF_OBJECT = "/v1/spaces/:spaceId/objects/:objectId/files";

const cache = group("The local file cache, over all spaces", {
  size: command({ summary: "Show how large it is", route: "GET /v1/files/cache" }),
  free: command({
    summary: "Free space by dropping what was used longest ago and can be fetched again",
    route: "POST /v1/files/cache/free",
    args: { bytes: { summary: "How many bytes to free", field: "bytes", integer: true } },
  }),
  sweep: command({ summary: "Drop what nothing refers to", route: "POST /v1/files/cache/sweep" }),
});

export const file = group("Files", {
  attach: fileAttach,
  list: command({
    summary: "List the files of a space, newest first",
    examples: ["file list <spaceId> --object <objectId> --limit 20"],

    route: `GET ${FILES}`,
    flags: {
      object: { kind: "text", hint: "ID", summary: "Only those of this object", alias: "object-id", query: "objectId" },
      limit: { kind: "integer", summary: "At most so many (0 all)", query: "limit" },
    },
  }),
  get: command({ summary: "Show a file's facts", route: `GET ${FILE}` }),
  download: fileDownload,
  status: command({ summary: "Show whether a file is backed up", route: `GET ${FILE}/status` }),
  stats: command({ summary: "Count a space's files by whether they are backed up", route: `GET ${FILES}/stats` }),
  subscribe: command({ summary: "Watch files being backed up", route: `GET ${FILES}/subscribe`, stream: true }),
  pin: command({ summary: "Keep a file's bytes on this device", route: `POST ${FILE}/pin` }),
  retry: command({ summary: "Try its backup again now", route: `POST ${FILE}/retry` }),
  offload: command({ summary: "Drop the local bytes of a file that is backed up", route: `POST ${FILE}/offload` }),
  delete: command({ summary: "Delete a file and its variants", route: `DELETE ${FILE}`, confirm: true }),
  query: command({
    summary: "Query the file rows of an object",
    examples: ['file query <spaceId> <objectId> --filter \'{"name":"plan.pdf"}\''],

    route: `POST ${OF_OBJECT}/query`,
    flags: QUERY_FLAGS,
    file: true,
  }),
  "query-subscribe": command({
    summary: "Watch the file rows of an object",
    examples: ["file query-subscribe <spaceId> <objectId>"],

    route: `POST ${OF_OBJECT}/query/subscribe`,
    flags: SUBSCRIBE_FLAGS,
    ...LIVE_QUERY,
  }),
  cache,
});
