/** What this page, from its loading to its leaving, is called among the tabs of the browser. */
export const TAB = crypto.randomUUID();
