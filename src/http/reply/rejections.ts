import { type Refusal, refusalText } from "../../protocol/refusals.ts";

/** What the rules dropped of a write, in words. */
export const inWords = <Dropped extends { readonly refusal: Refusal }>(rejections: readonly Dropped[]) =>
  rejections.map(({ refusal, ...where }) => ({ ...where, reason: refusalText(refusal) }));

/** The result of a write, with words for what was dropped of it, if anything was. */
export const writeReply = <Dropped extends { readonly refusal: Refusal }, Written>({
  rejections,
  ...written
}: Written & { readonly rejections?: readonly Dropped[] }) =>
  rejections ? { ...written, rejections: inWords(rejections) } : written;
