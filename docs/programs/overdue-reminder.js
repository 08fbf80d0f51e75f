/**
 * Reminds a chat of tasks that are due and not done, each of them once.
 * Arguments: {boardId, dataset?, spaceId?, chatId}. Tasks have title, due (an instant), done and remindedAt.
 * A cron trigger: {"spec": {"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}}.
 */
export default async function main({ boardId, dataset = "tasks", spaceId, chatId }) {
  const now = { $date: new Date().toISOString() };
  const { records } = await svc.query({
    spaceId,
    objectId: boardId,
    dataset,
    filter: { due: { $lt: now }, done: { $ne: true }, remindedAt: { $exists: false } },
    sort: ["due"],
    limit: 50,
  });
  if (records.length === 0) return { reminded: [] };

  const lines = records.map(({ title, due }) => `- [ ] ${title} (since ${due.$date.slice(0, 10)})`);
  await svc.chat.send({ spaceId, objectId: chatId, text: `**Overdue:**\n\n${lines.join("\n")}` });
  // Marked behind the message: a crash between the two reminds twice, never not at all.
  await svc.modify({
    spaceId,
    objectId: boardId,
    dataset,
    records: records.map(({ id }) => ({ id, ops: [{ type: "$set", path: "remindedAt", value: now }] })),
  });
  return { reminded: records.map(({ id }) => id) };
}
