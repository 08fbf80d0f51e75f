/** Which messages notify a person: in a space (its settings) and in one chat (`chat.notifyMode`). */
export const NOTIFY_MODES = ["all", "mentions", "none"] as const;
export type NotifyMode = (typeof NOTIFY_MODES)[number];
