import type { ChatRequest } from './request.ts';

/**
 * Counts prompt tokens: 3 for the request, 4 for each message, 85 for each image, and one for every started 4 bytes
 * (UTF-8) of each text and of the tools' JSON.
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
 * Completion token `index`. Each token is one piece of text and one delta. Some contain multi-byte characters, quotes,
 * line ends and text that looks like SSE.
 */
export function tokenText(index: number): string {
  return WORDS[index % WORDS.length] ?? '';
}

/** Arguments of a test tool call, in pieces. Each piece is one token. The call's name is one more token. */
export const TOOL_ARGUMENT_PIECES = ['{"city":', '"Zürich"', ',"days":', '3}'] as const;
