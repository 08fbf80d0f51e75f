/** Which messages somebody is told of: of a space (its settings) and of one chat (`chat.notifyMode`). */
export const NOTIFY_MODES = ["all", "mentions", "none"] as const;
export type NotifyMode = (typeof NOTIFY_MODES)[number];
