// One token is up to six letters or digits, or up to three other visible characters, with the space before it; or a
// run of blanks. No model's tokenizer, but anyone can count along, and the pieces of a text make up the text.
const TOKEN = / ?[\p{L}\p{N}\p{M}]{1,6}| ?[^\s\p{L}\p{N}\p{M}]{1,3}|\s{1,16}/gu;

/** Splits a text into its tokens; joined they are the text again. */
export function splitTokens(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

/** How many tokens a text has. */
export function countTokens(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += CHUNK) count += text.slice(at, at + CHUNK).match(TOKEN)?.length ?? 0;
  return count;
}

// A long prompt is counted in stretches, so that no array of millions of pieces is made of it. A token across the
// seam counts twice.
const CHUNK = 65_536;

/** Tokens of a request besides its texts: the frame of the prompt, of each message, and of each image. */
export const PROMPT_TOKENS = 3;
export const MESSAGE_TOKENS = 4;
export const IMAGE_TOKENS = 85;
