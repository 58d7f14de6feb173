import { GatewayError, type Offer, type Usage } from '#gateway';
import type { ChatBody } from './chat-schema.ts';
import type { UnseenTokens } from './chat-usage.ts';
import { promptTokensMax, type PromptSize } from './prompt-size.ts';
import { tokensOf } from './tokens-of.ts';

/** The most that one call can use at one offer. What is locked, what is asked for upstream and what a claim of usage is held against. */
export interface ChatBudget {
  readonly promptTokensMax: number;
  /** Tokens of one completion: passed down as `max_tokens`. */
  readonly completionCap: number;
  /** Tokens of all completions: the cap times `n`. */
  readonly completionTokensMax: number;
}

/** The lower of the client's `max_tokens` and `max_completion_tokens`; null when it gave neither. */
export function askedCap(body: ChatBody): number | null {
  const { max_tokens: old, max_completion_tokens: current } = body;
  if (old === null || old === undefined) return current ?? null;
  return current === null || current === undefined ? old : Math.min(old, current);
}

/** The budget of a call at `offer`. Without a cap of the client's it is what the model declares, else what the context leaves. */
export function chatBudget(body: ChatBody, size: PromptSize, offer: Offer): ChatBudget {
  const { contextLength, maxOutputTokens } = offer.model!;
  const prompt = promptTokensMax(size, contextLength);
  const completionCap = askedCap(body) ?? maxOutputTokens ?? contextLeft(size, prompt, contextLength);
  return { promptTokensMax: prompt, completionCap, completionTokensMax: completionCap * (body.n ?? 1) };
}

/** The budget of a call at `offer` that got a part of the request, which is all that it can claim. */
export function withPrompt(budget: ChatBudget, received: PromptSize, offer: Offer): ChatBudget {
  const prompt = promptTokensMax(received, offer.model!.contextLength);
  return prompt < budget.promptTokensMax ? { ...budget, promptTokensMax: prompt } : budget;
}

/**
 * Upstreams refuse a `max_tokens` that does not fit beside the prompt. What the prompt's bound leaves certainly fits; of a long prompt,
 * whose bound leaves little, half of what its likely size leaves fits in all but dense scripts.
 */
function contextLeft(size: PromptSize, prompt: number, contextLength: number): number {
  return Math.max(1, contextLength - prompt, Math.floor((contextLength - tokensOf(size.bytes)) / 2));
}

/** Throws GatewayError `unprocessable` when this model cannot do what the request asks for. */
export function checkFits(body: ChatBody, size: PromptSize, offer: Offer): void {
  const { contextLength, maxOutputTokens, inputModalities } = offer.model!;
  const asked = askedCap(body);
  const most = Math.min(maxOutputTokens ?? contextLength, contextLength);
  if (asked !== null && asked > most) {
    const param = body.max_tokens === asked ? 'max_tokens' : 'max_completion_tokens';
    throw new GatewayError('unprocessable', `${param} is ${asked}, but ${offer.service} gives at most ${most} tokens`, { param });
  }
  const { images, audio, video } = size;
  const missing = Object.entries({ image: images > 0, audio, video }).find(([kind, there]) => there && !inputModalities.includes(kind))?.[0];
  if (missing !== undefined) {
    throw new GatewayError('unprocessable', `${offer.service} takes no ${missing} input; it takes ${inputModalities.join(', ')}`, {
      param: 'messages',
    });
  }
}

/** What `offer` may claim of a completion without showing it. A provider that dials in shows what it claims, but for what it declares. */
export function unseenTokens({ model, endpoint }: Offer): UnseenTokens {
  const declared = model!.hiddenReasoning;
  return { max: declared?.max ?? (endpoint.kind === 'direct' ? null : 0), usual: declared?.usual ?? 0 };
}

/** A budget in the units that billing knows. */
export function toUsage(budget: ChatBudget, size: PromptSize): Usage {
  const prompt = BigInt(budget.promptTokensMax);
  const completion = BigInt(budget.completionTokensMax);
  return size.images > 0 ? { prompt, completion, image: BigInt(size.images) } : { prompt, completion };
}
