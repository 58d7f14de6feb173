/* Why a reply ended. The readers of chat replies bring the words of all providers into OpenAI's closed list. */

/** The reasons of OpenAI's API, and `error`, the gateway's own for a reply that failed. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'function_call' | 'content_filter' | 'error';

const REASONS: Readonly<Record<FinishReason, readonly string[]>> = {
  stop: [
    'end',
    'end turn',
    'end of turn',
    'end of text',
    'end of sequence',
    'eos',
    'eos token',
    'eos found',
    'stop sequence',
    'stop string',
    'stop string found',
    'stop token',
    'complete',
    'completed',
    'finish',
    'finished',
    'done',
    'normal',
  ],
  // All other words mean an end before the model was done: limits, pauses, and what no table knows.
  length: [],
  tool_calls: ['tool call', 'tool use', 'function calls'],
  function_call: [],
  content_filter: [
    'content filtered',
    'content policy',
    'content policy violation',
    'refusal',
    'refused',
    'safety',
    'image safety',
    'recitation',
    'image recitation',
    'blocked',
    'blocklist',
    'prohibited content',
    'image prohibited content',
    'spii',
    'language',
    'jailbreak',
    'model armor',
    'guardrail',
    'guardrails',
    'guardrail intervened',
    'moderation',
    'sensitive',
    'error toxic',
  ],
  error: ['failed', 'failure', 'network error', 'internal error', 'server error'],
};

/** A word without its spelling: `FinishReason.END_TURN`, `endTurn` and `end_turn` are one. */
const plain = (word: string): string =>
  word
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .replace(/^finishreason/, '');

const BY_WORD: ReadonlyMap<string, FinishReason> = new Map(
  (Object.entries(REASONS) as [FinishReason, readonly string[]][]).flatMap(([reason, words]) =>
    [reason, ...words].map((word) => [plain(word), reason] as const),
  ),
);

/** The longest word that is looked up. */
const WORD_MAX = 64;

/** The reason that a provider's word means; null for a word that says no end. An unknown word is a cut. */
export function finishReasonOf(word: unknown): FinishReason | null {
  // Some servers write `"null"` until the end.
  if (typeof word !== 'string' || word === '' || word === 'null') return null;
  if (Object.hasOwn(REASONS, word)) return word as FinishReason;
  return (word.length <= WORD_MAX && BY_WORD.get(plain(word))) || 'length';
}

/** Sets the reason of a choice that its provider ended with this word, which is kept as `native_finish_reason`. */
export function setFinishReason(choice: Record<string, unknown>, reason: FinishReason, word: unknown): void {
  choice['finish_reason'] = reason;
  if (reason !== word) choice['native_finish_reason'] ??= word;
}

/** Whether a reply ended before its model was done. */
export const endsEarly = (reason: FinishReason | null): boolean =>
  reason === 'length' || reason === 'content_filter' || reason === 'error';
