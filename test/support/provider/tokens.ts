import type { ChatRequest } from './request.ts';

/**
 * Prompt tokens: 3 for the request, 4 for each message, 85 for each image, and one for every begun 4 bytes (UTF-8)
 * of each text and of the tools' JSON.
 */
export function promptTokens(request: ChatRequest): number {
  let tokens = 3 + quarters(request.toolsText);
  for (const message of request.messages) {
    tokens += 4 + message.images * 85;
    for (const text of message.texts) tokens += quarters(text);
  }
  return tokens;
}

function quarters(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

const WORDS = [
  'the ',
  'toll ',
  'is ',
  'paid ',
  'für ',
  'jede ',
  '通行 ',
  '🚧 ',
  'and ',
  'counted\n',
  '"twice" ',
  'data: no ',
];

/**
 * Completion token `index`: one piece of text, one delta, one token. Some hold several bytes a character, quotes,
 * line ends and what looks like SSE.
 */
export function tokenText(index: number): string {
  return WORDS[index % WORDS.length] ?? '';
}

/** Arguments of a test tool call, in pieces; each piece is one token, and the call's name is one more. */
export const TOOL_ARGUMENT_PIECES = ['{"city":', '"Zürich"', ',"days":', '3}'] as const;
