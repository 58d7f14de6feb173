import { BOUNDS, isObject, type JsonObject } from '#wire';
import { failedByItsOwnWords, isError, malformed } from '#wire/replies';
import { type Cut, type ReplyEnd, type ReplyReader, undeliveredEnd } from '#call';
import { flagBeyond, NO_FLAGS, type RaisedFlag } from '#call/flags';
import type { Usage } from '#billing/amounts';
import { WholeJsonReader } from '../passing/whole-json-reader.ts';

interface Ranked {
  readonly index: number;
  readonly relevance_score: number;
}

export interface RerankResult {
  /** The most relevant first. */
  readonly results: readonly Ranked[];
  readonly searchUnits: number;
  /** null if the provider did not report them and they have no price. */
  readonly tokens: number | null;
  /** The gateway counted one of the two, because the provider did not. */
  readonly estimated: boolean;
}

interface SearchBounds {
  readonly documents: number;
  readonly results: number;
  /** The most that was locked, and what is usual for such a request. */
  readonly tokens: { readonly max: number; readonly usual: number };
  readonly units: { readonly max: number; readonly usual: number };
  /** Which of the two have a price. */
  readonly priced: { readonly tokens: boolean; readonly units: boolean };
  readonly replyBytesMax: number;
}

/**
 * Reads a reply in the form of Cohere's or Jina's API: `results` with `index` and `relevance_score`. Claims above the
 * bounds are cut to them, so that they never cost more than the lock.
 */
export const createRerankReader = (bounds: SearchBounds): ReplyReader<RerankResult | null> => new RerankReader(bounds);

class RerankReader extends WholeJsonReader<RerankResult> implements ReplyReader<RerankResult | null> {
  readonly #bounds: SearchBounds;

  constructor(bounds: SearchBounds) {
    super(BOUNDS.rerank, bounds.replyBytesMax);
    this.#bounds = bounds;
  }

  protected endOf(reply: JsonObject): ReplyEnd<RerankResult> {
    const { priced } = this.#bounds;
    const results = resultsOf(reply, this.#bounds);
    const { units, tokens } = this.#counted(reply);
    const estimated = (priced.units && units.missing) || (priced.tokens && tokens.missing);
    let flags: readonly RaisedFlag[] = priced.tokens && tokens.missing ? ['usage_missing'] : NO_FLAGS;
    if (priced.units) flags = flagBeyond(flags, 'call', units.claimed, this.#bounds.units.max);
    if (priced.tokens) flags = flagBeyond(flags, 'prompt', tokens.claimed, this.#bounds.tokens.max);
    const known = priced.tokens || !tokens.missing ? tokens.count : null;
    return {
      usage: this.#usageOf(known, units),
      outcome: 'complete',
      estimated,
      finishReason: 'stop',
      flags,
      result: { results, searchUnits: units.count, tokens: known, estimated },
    };
  }

  /** An incomplete order is useless. */
  cut(cut: Cut): ReplyEnd<null> {
    const { priced } = this.#bounds;
    const { units, tokens } = this.#counted({
      ...this.parsedObject('usage', cut.rest),
      ...this.parsedObject('meta', cut.rest),
    });
    const isReported =
      (priced.units || priced.tokens) && !(priced.units && units.missing) && !(priced.tokens && tokens.missing);
    const usage = this.#usageOf(tokens.count, units);
    return undeliveredEnd(cut, { reported: isReported ? usage : null, input: usage }, null);
  }

  #counted(reply: JsonObject): { readonly units: CountedClaim; readonly tokens: CountedClaim } {
    const { tokens, units } = this.#bounds;
    return { units: counted(unitsIn(reply), units), tokens: counted(tokensIn(reply), tokens) };
  }

  #usageOf(tokens: number | null, { count }: CountedClaim): Usage {
    return { ...(tokens === null ? {} : { prompt: BigInt(tokens) }), call: BigInt(count) };
  }
}

interface CountedClaim {
  readonly count: number;
  /** 0 if it is missing. */
  readonly claimed: number;
  readonly missing: boolean;
}

function counted(claim: number | null, { max, usual }: { readonly max: number; readonly usual: number }): CountedClaim {
  if (claim === null) return { count: Math.min(usual, max), claimed: 0, missing: true };
  return { count: Math.min(claim, max), claimed: claim, missing: false };
}

/** Throws UpstreamFailure if a reply does not rank the documents, each once. */
function resultsOf(reply: JsonObject, { documents, results: resultCount }: SearchBounds): readonly Ranked[] {
  if (isError(reply['error'])) throw failedByItsOwnWords(reply['error']);
  const { results } = reply;
  if (!Array.isArray(results)) throw malformed('its reply has no results');
  if (results.length < resultCount)
    throw malformed(`its reply has ${results.length} results, but ${resultCount} were asked for`);
  const seen = new Set<number>();
  const ranked = (results as readonly unknown[]).map((each) => {
    const { index, relevance_score: score } = isObject(each) ? each : {};
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= documents || seen.has(index))
      throw malformed('its reply ranks a document twice, or one that is not in the request');
    if (typeof score !== 'number') throw malformed('its reply has a result without relevance_score');
    seen.add(index);
    return { index, relevance_score: score };
  });
  return ranked.toSorted((a, b) => b.relevance_score - a.relevance_score).slice(0, resultCount);
}

/** Search units as Cohere's API and OpenRouter's name them; null for none. */
function unitsIn({ meta, usage }: JsonObject): number | null {
  const billed = member(meta, 'billed_units');
  return countOf(member(billed, 'search_units')) ?? countOf(member(usage, 'search_units'));
}

/** Tokens as Jina's API, other servers and Cohere's API name them; null for none, and for 0: a query has some. */
function tokensIn({ meta, usage }: JsonObject): number | null {
  return (
    countOf(member(usage, 'total_tokens')) ||
    countOf(member(usage, 'prompt_tokens')) ||
    countOf(member(member(meta, 'tokens'), 'input_tokens')) ||
    countOf(member(member(meta, 'billed_units'), 'input_tokens')) ||
    null
  );
}

const member = (holder: unknown, name: string): unknown => (isObject(holder) ? holder[name] : undefined);

const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
