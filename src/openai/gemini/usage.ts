import { isObject, type JsonObject } from '#wire';
import { isCount } from '../chat/reply/chat-usage.ts';

/* The usage in replies of the Gemini API. */

export const COUNTS = [
  'promptTokenCount',
  'toolUsePromptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'cachedContentTokenCount',
] as const;

/** Which of these tokens are text, sound or pictures. */
export const DETAILS = ['promptTokensDetails', 'cacheTokensDetails', 'candidatesTokensDetails'] as const;

/** The tokens of sound and of pictures, in the form of chat. */
export function byModality(details: readonly unknown[]): JsonObject {
  const counts = { audio_tokens: 0, image_tokens: 0 };
  for (const one of details) {
    if (!isObject(one) || !isCount(one['tokenCount'])) continue;
    if (one['modality'] === 'AUDIO') counts.audio_tokens += one['tokenCount'];
    if (one['modality'] === 'IMAGE') counts.image_tokens += one['tokenCount'];
  }
  return counts;
}

/** A usage with what a later one adds to it. A later one may have a part of the counts, and the counts never fall. */
export function largerUsage(before: unknown, later: unknown): unknown {
  if (!isObject(before) || !isObject(later)) return later ?? before;
  const entries = Object.entries(before).filter(([name, count]) => {
    const other = later[name] ?? null;
    return other === null || (isCount(count) && isCount(other) && other < count);
  });
  return { ...later, ...Object.fromEntries(entries) };
}
