/**
 * Writes what was said in a chat since the last run, and by how many, into that chat or another one.
 * Arguments: {chatId, spaceId?, intoChatId?, hours?}. A cron trigger: {"spec": "0 18 * * *"}.
 */
export default async function main({ chatId, spaceId, intoChatId = chatId, hours = 24 }, ctx) {
  const since = ctx.lastRunAt ?? new Date(Date.parse(ctx.scheduledAt) - hours * 3_600_000).toISOString();
  const { records } = await svc.query({
    spaceId,
    objectId: chatId,
    dataset: "chat_messages",
    // What programs wrote, this one among them, is no news.
    filter: { createdAt: { $gt: { $date: since } }, agent: { $exists: false } },
    sort: ["createdAt"],
    limit: 500,
  });
  if (records.length === 0) return { messages: 0 };

  const people = new Set(records.map(({ creator }) => creator));
  const lines = records.slice(-10).map(({ text = "" }) => `- ${text.split("\n")[0].slice(0, 80)}`);
  const text = `**Today:** ${records.length} messages from ${people.size}.\n\n${lines.join("\n")}`;
  await svc.chat.send({ spaceId, objectId: intoChatId, text });
  log("digest", records.length);
  return { messages: records.length, people: people.size };
}
