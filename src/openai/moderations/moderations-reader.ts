import { BOUNDS, isObject } from '#wire';
import { failedByItsOwnWords, isError, malformed, tooLarge } from '#wire/replies';
import { type Cut, type ReplyEnd, type ReplyReader, undeliveredEnd } from '#call';
import { flagBeyond, NO_FLAGS } from '#call/flags';
import { WholeJsonReader } from '../passing/whole-json-reader.ts';

export interface ModerationResult {
  /** null if the reply has none. */
  readonly id: string | null;
  readonly results: readonly Judged[];
  /** null if the reply names none and none are charged. */
  readonly tokens: number | null;
  readonly estimated: boolean;
}

type Judged = Readonly<Record<string, unknown>>;

/** The members of a result that APIs have. What else a provider writes is left out. */
const KEPT = ['flagged', 'categories', 'category_scores', 'category_applied_input_types'] as const;
/** OpenAI's API has 13. */
const CATEGORIES_MAX = 100;

function resultOf(result: unknown): Judged {
  if (!isObject(result) || typeof result['flagged'] !== 'boolean')
    throw malformed('its reply has a result without flagged');
  const keptMembers: Record<string, unknown> = {};
  for (const name of KEPT) {
    const value = result[name];
    if (isObject(value) && Object.keys(value).length > CATEGORIES_MAX)
      throw tooLarge(`its reply has a result with more than ${CATEGORIES_MAX} categories`);
    if (value !== undefined) keptMembers[name] = value;
  }
  return keptMembers;
}

interface ModerationBounds {
  readonly results: number;
  readonly tokens: { readonly max: number; readonly usual: number };
  readonly priced: boolean;
  readonly replyBytesMax: number;
}

export const createModerationReader = (bounds: ModerationBounds): ReplyReader<ModerationResult | null> =>
  new ModerationReader(bounds);

class ModerationReader extends WholeJsonReader<ModerationResult> implements ReplyReader<ModerationResult | null> {
  readonly #bounds: ModerationBounds;

  constructor(bounds: ModerationBounds) {
    super(BOUNDS.moderation, bounds.replyBytesMax);
    this.#bounds = bounds;
  }

  protected endOf(reply: Readonly<Record<string, unknown>>): ReplyEnd<ModerationResult> {
    const { results: resultCount, tokens: tokenBounds, priced } = this.#bounds;
    const { error, id, results } = reply;
    if (isError(error)) throw failedByItsOwnWords(error);
    if (!Array.isArray(results) || results.length !== resultCount)
      throw malformed(`its reply has not one result for each of ${resultCount} inputs`);
    const judged = (results as readonly unknown[]).map(resultOf);
    const claim = claimIn(reply);
    const estimated = priced && claim === undefined;
    const tokens = Math.min(claim ?? tokenBounds.usual, tokenBounds.max);
    return {
      usage: { call: 1n, ...(priced || claim !== undefined ? { prompt: BigInt(tokens) } : {}) },
      outcome: 'complete',
      estimated,
      finishReason: 'stop',
      // OpenAI's own replies have no usage.
      flags: priced ? flagBeyond(NO_FLAGS, 'prompt', claim ?? 0, tokenBounds.max) : NO_FLAGS,
      result: {
        id: typeof id === 'string' ? id : null,
        results: judged,
        tokens: priced || claim !== undefined ? tokens : null,
        estimated,
      },
    };
  }

  /** A judgement that did not arrive is useless. */
  cut(cut: Cut): ReplyEnd<null> {
    const { usual, max } = this.#bounds.tokens;
    const claim = claimIn(this.parsedObject('usage', cut.rest));
    const used = (tokens: number) => ({ call: 1n, prompt: BigInt(Math.min(tokens, max)) });
    const reported = claim === undefined ? null : used(claim);
    return undeliveredEnd(cut, { reported, input: used(usual) }, null);
  }
}

/** The tokens that a reply reports; undefined without a count. */
function claimIn({ usage }: Readonly<Record<string, unknown>>): number | undefined {
  const { total_tokens: total, prompt_tokens: prompt } = isObject(usage) ? usage : {};
  return [total, prompt].find((one) => Number.isSafeInteger(one) && (one as number) >= 0) as number | undefined;
}
