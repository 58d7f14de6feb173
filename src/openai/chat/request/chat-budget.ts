import { GatewayError } from '#errors';
import { type CapName, imageTokensMax } from '#config';
import type { Usage } from '#billing/amounts';
import { NO_REFUSALS, type RefusedFields } from '#call/refused-fields';
import { isOwn, type Offer } from '#catalog';
import type { ChatBody } from '../chat-schema.ts';
import { promptTokensMax, type PromptSize, tokensInRequest, tokensOf } from './prompt-size.ts';
import type { PricedParts } from '../price/priced-parts.ts';
import { requireKind } from '../../model-kinds.ts';

/**
 * The most that one call can use at one offer. It is locked, sent upstream as the cap, and compared with claims of
 * usage.
 */
export interface ChatBudget {
  readonly promptTokensMax: number;
  /** Tokens of one completion. */
  readonly completionCap: number;
  /** Tokens of all completions: the cap times `n`. */
  readonly completionTokensMax: number;
  /**
   * The side that enforces the cap. `provider`: the cap is sent, so output beyond it is the provider's fault.
   * `gateway`: the provider takes no cap, so the gateway cuts the output at the client's cap. `model`: the client
   * gave no cap and none is sent, so the model ends by itself, within its context.
   */
  readonly keptBy: 'provider' | 'gateway' | 'model';
  /** Present at the operator's own provider, whose bill counts. Absent at a provider that dialled in. */
  readonly own?: OwnMeasure | undefined;
}

/** The facts of a model of the operator's own provider that a measure needs. */
interface OwnMeasure {
  /** The most tokens of an image of the prompt; 0 if it has none. */
  readonly imageTokens: number;
}

const WITHOUT_IMAGES: OwnMeasure = { imageTokens: 0 };

function ownMeasure({ images }: PromptSize, offer: Offer): OwnMeasure | undefined {
  if (!isOwn(offer)) return undefined;
  return images === 0 ? WITHOUT_IMAGES : { imageTokens: imageTokensMax(offer.model!, true) };
}

/** Tokens of one completion that the provider may claim without delivering output for them. */
export interface UnseenTokens {
  /** null: as many as the claim itself says are reasoning or rejected predictions. */
  readonly max: number | null;
  /** Charged if a measure replaces the claim. */
  readonly usual: number;
}

/** The lower of the client's `max_tokens` and `max_completion_tokens`; null when it gave neither. */
export function requestedCap(body: ChatBody): number | null {
  const { max_tokens: old, max_completion_tokens: current } = body;
  if (old === null || old === undefined) return current ?? null;
  return current === null || current === undefined ? old : Math.min(old, current);
}

/**
 * The budget of a call at `offer`. The cap is what the client asks for, at most what the model gives. Without a cap
 * of the client it is the model's known maximum, else the rest of the context. The cap is sent if the client asked
 * for one. It is also sent if it is the model's own bound and fits into the context beside the longest possible
 * prompt.
 */
export function chatBudget(body: ChatBody, size: PromptSize, offer: Offer): ChatBudget {
  const { contextLength } = offer.model!;
  const { name, bound } = takenCap(offer);
  const requestedTokens = requestedCap(body);
  const completionCap = Math.min(requestedTokens ?? Infinity, bound ?? Infinity, contextLeft(size, contextLength));
  const sent =
    name !== 'none' && (requestedTokens !== null || (bound !== null && fitsContext(size, completionCap, offer)));
  return {
    promptTokensMax: promptTokensMax(size, offer),
    completionCap,
    completionTokensMax: completionCap * (body.n ?? 1),
    keptBy: sent ? 'provider' : requestedTokens === null ? 'model' : 'gateway',
    own: ownMeasure(size, offer),
  };
}

/** Whether an answer of `tokens` fits into the context beside the longest that the prompt in the request can be. */
export function fitsContext(size: PromptSize, tokens: number, offer: Offer): boolean {
  return tokensInRequest(size, offer) + tokens <= offer.model!.contextLength;
}

/**
 * The budget of a call at an `offer` that gets only a part of the request, or also the beginning of its answer. The
 * offer can claim prompt tokens for what it got. Those of the beginning come out of the completion that was locked.
 */
export function withPrompt(budget: ChatBudget, received: PromptSize, offer: Offer, isContinued: boolean): ChatBudget {
  const prompt = promptTokensMax(received, offer);
  return isContinued || prompt < budget.promptTokensMax ? { ...budget, promptTokensMax: prompt } : budget;
}

/**
 * The part of the context that is left for the completion even if the prompt seems to fill the context. The prompt
 * may have fewer tokens than estimated, because code and some scripts have more bytes per token.
 */
const LEFT_AT_LEAST = 1 / 8;

function contextLeft(size: PromptSize, contextLength: number): number {
  return Math.max(Math.ceil(contextLength * LEFT_AT_LEAST), contextLength - tokensOf(size.bytes));
}

/** Throws GatewayError `unprocessable` when this model cannot do what the request asks for. */
export function checkFits(size: PromptSize, offer: Offer): void {
  const { inputModalities } = offer.model!;
  requireKind(offer, 'chat');
  const { images, audio, video, file } = size;
  if (images === 0 && !audio && !video && !file) return;
  const missing = Object.entries({ image: images > 0, audio, video, file }).find(
    ([kind, there]) => there && !inputModalities.includes(kind),
  )?.[0];
  if (missing !== undefined) {
    throw new GatewayError(
      'unprocessable',
      `${offer.service} takes no ${missing} input; it takes ${inputModalities.join(', ')}`,
      { param: 'messages' },
    );
  }
}

/**
 * The tokens of a completion that `offer` may claim without delivering output for them. For a provider that dials
 * in, these are only the tokens that it declares as hidden reasoning.
 */
export function unseenTokens({ model, endpoint }: Offer): UnseenTokens {
  const declared = model!.hiddenReasoning;
  return { max: declared?.max ?? (endpoint.kind === 'direct' ? null : 0), usual: declared?.usual ?? 0 };
}

/** A budget in the units that billing knows: the most that the call can use. */
export function toUsage(budget: ChatBudget, size: PromptSize, { priced, atMost }: PricedParts): Usage {
  const prompt = BigInt(budget.promptTokensMax);
  const completion = BigInt(budget.completionTokensMax);
  const tokens = size.images > 0 ? { prompt, completion, image: BigInt(size.images) } : { prompt, completion };
  return priced.size === 0 ? tokens : { ...tokens, ...atMost };
}

interface TakenCap {
  /** The name of the cap. `none`: the offer takes no cap. null: not known, so the client's name is tried. */
  readonly name: CapName | null;
  /** Most tokens of one completion; null if not known. */
  readonly bound: number | null;
}

/** Learnt from refusals. A reload or a new registration makes a new Offer, so the gateway learns again. */
const learntBounds = new WeakMap<Offer, number>();

/** How an offer takes the cap: as its block says, corrected by its refusals. */
export function takenCap(offer: Offer, refused: RefusedFields = NO_REFUSALS): TakenCap {
  const { cap = null, maxOutputTokens } = offer.model!;
  const bound = learntBounds.get(offer) ?? null;
  const [old, current] = [refused.has(offer, 'max_tokens'), refused.has(offer, 'max_completion_tokens')];
  return {
    name:
      !old && !current
        ? cap
        : cap === 'none' || (old && current)
          ? 'none'
          : old
            ? 'max_completion_tokens'
            : 'max_tokens',
    bound: bound === null || maxOutputTokens === null ? (bound ?? maxOutputTokens) : Math.min(bound, maxOutputTokens),
  };
}

export const learnBound = (offer: Offer, bound: number): void => void learntBounds.set(offer, bound);
