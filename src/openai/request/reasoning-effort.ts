import type { ChatBody } from './chat-schema.ts';

/** `reasoning`, translated for a provider that does not list this field. */
interface ReasoningEffort {
  readonly fields: { readonly reasoning_effort?: unknown };
  /** Names of the members that such a provider does not get. */
  readonly dropped: readonly string[];
}

/**
 * Translates another router's `reasoning: {effort}` to `reasoning_effort` of the published chat API. That API has no
 * fields for the other members of `reasoning`.
 */
export function reasoningEffort({ reasoning, reasoning_effort: own }: ChatBody): ReasoningEffort {
  if (reasoning === undefined || reasoning === null) return { fields: {}, dropped: [] };
  if (typeof reasoning !== 'object' || Array.isArray(reasoning)) return { fields: {}, dropped: ['reasoning'] };
  const { effort, ...rest } = reasoning as Readonly<Record<string, unknown>>;
  const taken = typeof effort === 'string' && (own === undefined || own === null || own === effort);
  const others = effort === undefined || taken ? Object.keys(rest) : ['effort', ...Object.keys(rest)];
  return { fields: taken ? { reasoning_effort: effort } : {}, dropped: others.map((name) => `reasoning.${name}`) };
}
