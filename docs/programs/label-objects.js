/**
 * Gives new objects of a type a tag, by asking the model which of the given ones fits.
 * Arguments: {type, labels, spaceId?, atOnce?}. A cron trigger with a cap:
 * {"spec": "0 * * * *", "limits": {"maxCostPerRun": 0.02}}.
 */
export default async function main({ type, labels, spaceId, atOnce = 10 }) {
  const { records } = await svc.query({
    spaceId,
    filter: { "svc.types": type, "svc.tags": { $exists: false }, "svc.name": { $exists: true } },
    sort: ["createdAt"],
    limit: atOnce,
  });
  const labelled = {};
  for (const { id, svc: about } of records) {
    const { content } = await svc.editor.read({ spaceId, objectId: id });
    const { message } = await llm.chat({
      messages: [
        { role: "system", content: `Answer with one of these words and nothing else: ${labels.join(", ")}` },
        { role: "user", content: `${about.name}\n\n${content.slice(0, 2000)}` },
      ],
      maxTokens: 10,
    });
    const label = labels.find((one) => message.content.toLowerCase().includes(one.toLowerCase()));
    if (label === undefined) {
      log("no label fits", id, message.content);
      continue;
    }
    await svc.modify({
      spaceId,
      objectId: id,
      dataset: "objects",
      records: [{ id, ops: [{ type: "$set", path: "svc.tags", value: [label] }] }],
    });
    labelled[id] = label;
  }
  return labelled;
}
