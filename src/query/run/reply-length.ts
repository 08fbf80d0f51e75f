import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";

/** The limit that a reply has passed which is too long for whoever asks. */
export const REPLY_LIMIT = "reply";

/** @throws SvcError request.too_large */
export function checkLength(records: readonly string[], mostChars = Number.POSITIVE_INFINITY): void {
  if (!Number.isFinite(mostChars)) return;
  let chars = 0;
  for (const record of records) chars += record.length;
  if (chars > mostChars)
    throw refusedAs(
      "request.too_large",
      { limit: REPLY_LIMIT, limitBytes: mostChars },
      refusal("query.reply_too_long", { limitChars: mostChars }),
    );
}
