import type { ChatBody } from './chat-schema.ts';

/** The fields that say how much a model reasons, at a provider that does not list `reasoning`. */
interface ReasoningEffort {
  readonly fields: { readonly reasoning_effort?: unknown };
  /** Names of what such a provider does not get. */
  readonly dropped: readonly string[];
}

/**
 * Another router's `reasoning: {effort}` as the `reasoning_effort` of the published chat API. Its other members
 * have no name there.
 */
export function reasoningEffort({ reasoning, reasoning_effort: own }: ChatBody): ReasoningEffort {
  if (reasoning === undefined || reasoning === null) return { fields: {}, dropped: [] };
  if (typeof reasoning !== 'object' || Array.isArray(reasoning)) return { fields: {}, dropped: ['reasoning'] };
  const { effort, ...rest } = reasoning as Readonly<Record<string, unknown>>;
  const taken = typeof effort === 'string' && (own === undefined || own === null || own === effort);
  const others = effort === undefined || taken ? Object.keys(rest) : ['effort', ...Object.keys(rest)];
  return { fields: taken ? { reasoning_effort: effort } : {}, dropped: others.map((name) => `reasoning.${name}`) };
}
