// One token is up to six letters or digits, or up to three other visible characters, each with the space before them. A
// run of up to 16 blanks is a token too. No real model counts like this, but anyone can check the count. The tokens
// together are the whole text.
const TOKEN = / ?[\p{L}\p{N}\p{M}]{1,6}| ?[^\s\p{L}\p{N}\p{M}]{1,3}|\s{1,16}/gu;

/** Splits a text into its tokens. Joined, they give the same text. */
export function splitTokens(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

/** Counts the tokens of a text. */
export function countTokens(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += CHUNK) count += text.slice(at, at + CHUNK).match(TOKEN)?.length ?? 0;
  return count;
}

// A long prompt is counted in chunks of this many characters, so that no array of millions of tokens is made. A token
// across the border of two chunks counts twice.
const CHUNK = 65_536;

/** Tokens that a request has besides its texts: for the prompt, for each message, and for each image. */
export const PROMPT_TOKENS = 3;
export const MESSAGE_TOKENS = 4;
export const IMAGE_TOKENS = 85;
