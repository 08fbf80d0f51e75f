import { bytesToBase58 } from "../../base/base58.ts";
import { randomBytes } from "../../base/random.ts";
import { svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import {
  ChangeStreamsBody,
  OpenStreamsBody,
  STREAMS_PATH,
  StreamsReady,
  type SubscriptionRequest,
} from "../../protocol/stream.ts";
import { Multiplex } from "../multiplex.ts";
import { type Route, route } from "../route.ts";
import { EventConnection } from "../stream/event-connection.ts";
import type { InnerStreams } from "../stream/inner-streams.ts";

/**
 * A drop is answered once what was handed over before is written, if the reader reads. For a reader that does not, it is
 * answered after this long.
 */
const DROP_WAIT_MS = 1_000;

const SUBSCRIPTION_EXAMPLE = {
  id: "tasks",
  method: "POST",
  path: "/v1/spaces/bafyrei…/query/subscribe",
  body: { objectId: "bafyrei…", dataset: "tasks", sort: ["-_ver.id"], limit: 50 },
};

/** One connection for many streams, because a browser opens only six to one server for all its tabs. */
export const streamRoutes: Route[] = [
  route({
    method: "POST",
    path: STREAMS_PATH,
    id: "openStreams",
    tag: "Streams",
    summary: "Follow many streams over one connection",
    description: [
      `Up to ${LIMITS.streamSubscriptions} subscriptions, each of which is a request of any endpoint that answers with an event stream.`,
      "`ready` carries the `streamId` with which POST /v1/streams/:streamId adds and drops subscriptions. Every further frame is `event: frame` with `{id, event, data}`: what the endpoint at its path sends, `ready`, `snapshot` and `closed` included, in that endpoint's order. Frames of different subscriptions take turns.",
      'A refusal comes as `{id, event: "error", data: {error}}` and ends that subscription alone, as `closed` does; its id is then free. Ask again for a fresh snapshot.',
      `Subscriptions are opened in the order asked, ${LIMITS.multiplexOpenings} at a time: the next one's snapshot is made when one was taken. Beyond ${LIMITS.multiplexBytes >> 20} MiB of frames that wait for the reader, the subscription that holds most of them is closed with \`overflow\`.`,
    ].join("\n\n"),
    body: OpenStreamsBody,
    example: {
      subscriptions: [
        SUBSCRIPTION_EXAMPLE,
        { id: "events", method: "GET", path: "/v1/events/subscribe?type=process.*" },
      ],
    },
    responses: {
      200: {
        description: "The frames of all its subscriptions, until the client leaves or the server stops",
        frames: { ready: StreamsReady },
        carries: true,
      },
    },
    handler: async ({ server, inner, request, body }) => {
      check("subscriptions", body.subscriptions, new Set(), inner);
      server.streams.admit();
      const streamId = bytesToBase58(randomBytes(16));
      const multiplex = new Multiplex({ streamId, inner });
      const connection = new EventConnection(
        {
          take: () => multiplex.take(),
          onChange: (listener) => multiplex.onChange(listener),
          get finished() {
            return multiplex.finished;
          },
          close: (reason) => multiplex.close(reason),
          stop: () => {
            server.streams.multiplexById.delete(streamId);
            multiplex.stop();
          },
        },
        server.streams,
      );
      server.streams.multiplexById.set(streamId, {
        get ids() {
          return multiplex.ids;
        },
        add: (subscriptions) => multiplex.add(subscriptions),
        drop: (ids) => multiplex.drop(ids),
        written: () => connection.written(),
      });
      multiplex.add(body.subscriptions);
      const response = connection.respond(request.signal);
      server.disableIdleTimeout(request);
      return response;
    },
  }),
  route({
    method: "POST",
    path: `${STREAMS_PATH}/:streamId`,
    id: "changeStreams",
    tag: "Streams",
    summary: "Add subscriptions to an open stream, and drop some",
    description:
      "Drops first, then adds; an id that is dropped may be used again at once. After the answer no frame of what was dropped is sent. Ids to drop that are not there, because they have ended, are passed by. All or nothing: a refusal changes nothing.",
    params: { streamId: "From the stream's `ready`" },
    body: ChangeStreamsBody,
    example: { add: [SUBSCRIPTION_EXAMPLE], drop: ["events"] },
    responses: { 204: { description: "Dropped, and the added ones are being opened: their frames tell how it went" } },
    errors: ["stream.not_found"],
    handler: async ({ server, inner, params, body }) => {
      const open = server.streams.multiplexById.get(params.streamId);
      if (!open) throw svcError("stream.not_found", { streamId: params.streamId });
      const { add = [], drop = [] } = body;
      check("add", add, new Set(open.ids).difference(new Set(drop)), inner);
      open.drop(drop);
      open.add(add);
      if (drop.length > 0) await Promise.race([open.written(), Bun.sleep(DROP_WAIT_MS)]);
    },
  }),
];

/** Refuses subscriptions that cannot be carried beside those with the ids `taken`. */
function check(
  field: string,
  subscriptions: readonly SubscriptionRequest[],
  taken: Set<string>,
  inner: InnerStreams,
): void {
  if (taken.size + subscriptions.length > LIMITS.streamSubscriptions) {
    throw refusal(field, `a stream has at most ${LIMITS.streamSubscriptions} subscriptions; open another one`);
  }
  for (const [index, asked] of subscriptions.entries()) {
    if (taken.has(asked.id)) throw refusal(`${field}[${index}].id`, `${asked.id} is the id of another subscription`);
    taken.add(asked.id);
    const fault = inner.fault(asked);
    if (fault !== undefined) throw refusal(`${field}[${index}].path`, fault);
  }
}

function refusal(field: string, reason: string): Error {
  return svcError("request.invalid_field", { field, reason }, `${field} is refused: ${reason}`);
}
