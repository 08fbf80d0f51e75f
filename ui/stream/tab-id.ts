/** The name of this page among the browser's tabs, from its loading to its unloading. */
export const TAB = crypto.randomUUID();
