/**
 * What goes on beside a test takes its time: a load, a fake that answers late, a kill at a moment that a seed chooses. Nobody
 * may look at an outcome because so much time has passed; for that there are conditions (`until`).
 */
export const pace = (ms: number): Promise<void> => Bun.sleep(ms);
