import { command, group } from "./command.ts";

const MESSAGES = "/v1/spaces/:spaceId/objects/:objectId/chat/messages";

export const chat = group("Chat messages", {
  send: command({
    summary: "Send a message",
    examples: [
      'chat send <spaceId> <objectId> --text "Hello **all**"',
      "chat send <spaceId> <objectId> --file message.json",
    ],

    route: `POST ${MESSAGES}`,
    flags: {
      text: { kind: "text", hint: "markdown", summary: "Text of the message", field: "text" },
      "reply-to": { kind: "text", hint: "ID", summary: "Message it answers", field: "replyToMessageId" },
      "agent-name": { kind: "text", summary: "Name of the agent that writes it" },
      "agent-debug-link": { kind: "text", hint: "URL", summary: "Where the agent's work can be looked into" },
      "agent-done": { kind: "switch", summary: "The agent has said its last word" },
    },
    file: true,
    body: ({ flags }) => {
      const { "agent-name": name, "agent-debug-link": debugLink, "agent-done": done } = flags;
      if (name === undefined && debugLink === undefined && done === undefined) return {};
      return {
        agent: {
          ...(name === undefined ? {} : { name }),
          ...(debugLink === undefined ? {} : { debugLink }),
          done: done ?? false,
        },
      };
    },
  }),
  edit: command({
    summary: "Change the text of one's own message",
    examples: ['chat edit <spaceId> <objectId> <msgId> --text "Hello"'],

    route: `PATCH ${MESSAGES}/:msgId`,
    flags: { text: { kind: "text", hint: "markdown", summary: "The new text", field: "text" } },
    file: true,
  }),
  delete: command({ summary: "Delete one's own message", route: `DELETE ${MESSAGES}/:msgId` }),
  react: command({ summary: "Add or take back a reaction", route: `POST ${MESSAGES}/:msgId/reactions/:emoji` }),
});
