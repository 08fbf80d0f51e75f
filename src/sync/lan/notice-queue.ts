/** How many notices of a peer may wait to be handled, and how many bytes of them. More are dropped. */
interface NoticeLimits {
  readonly queuedNotices: number;
  readonly queuedNoticeBytes: number;
}

/** Handles the notices of a peer one after the other. */
export function createNoticeQueue(
  limits: NoticeLimits,
  handle: (kind: string, body: Uint8Array) => Promise<void> | undefined,
  isClosed: () => boolean,
) {
  const notices: { readonly kind: string; readonly body: Uint8Array }[] = [];
  let bytes = 0;
  let handling = false;
  let dropped = 0;

  const handleAll = async (): Promise<void> => {
    handling = true;
    for (let notice = notices.shift(); notice && !isClosed(); notice = notices.shift()) {
      bytes -= notice.body.length;
      await handle(notice.kind, notice.body)?.catch(() => {}); // its owner logs its own failure
    }
    handling = false;
  };

  return {
    add(kind: string, body: Uint8Array): void {
      if (notices.length >= limits.queuedNotices || bytes + body.length > limits.queuedNoticeBytes) {
        dropped++;
        return;
      }
      notices.push({ kind, body: body.slice() });
      bytes += body.length;
      if (!handling) void handleAll();
    },
    dropped: (): number => dropped,
  };
}
