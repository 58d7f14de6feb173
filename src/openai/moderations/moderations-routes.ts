import { rateOf } from '#billing/amounts';
import { imageTokensMax } from '#config';
import { tokenizedBytes, isOwn, type Offer } from '#catalog';
import { GatewayError } from '#errors';
import { tokensOf } from '../chat/request/prompt-size.ts';
import { passedBody, passedCall } from '../passing/passed-call.ts';
import type { PassedCall, PassedContext, PassedWire } from '../passing/passed-route.ts';
import { costMembers } from '../passing/write-answer.ts';
import { createModerationReader, type ModerationResult } from './moderations-reader.ts';
import {
  checkModerated,
  moderationAnswerSchema,
  type ModerationBody,
  moderationSchema,
  withDefaultModel,
} from './moderations-schema.ts';

export const MODERATIONS_WIRE: PassedWire<ModerationBody, ModerationResult> = {
  kind: 'moderation',
  described: {
    operationId: 'createModeration',
    description:
      'A model whose output is `moderation` says whether texts or pictures are harmful, as in OpenAI’s API. Most such models are free; others have a price per call or per token.',
  },
  noun: 'Judgement',
  schema: moderationSchema,
  parameters: [],
  answerSchema: moderationAnswerSchema,
  addresses: ['url'],
  complete: withDefaultModel,
  check: checkModerated,
  toCall,
  answer: ({ id: providerId, results, tokens, estimated }, { id, service, providerName, settlement }) => [
    Buffer.from(
      JSON.stringify({
        id: providerId ?? id,
        model: service,
        provider: providerName,
        results,
        usage: {
          ...(tokens === null ? {} : { prompt_tokens: tokens, total_tokens: tokens }),
          ...(estimated ? { estimated } : {}),
          ...costMembers(settlement),
        },
      }),
    ),
  ],
};

const SENT: ReadonlySet<string> = new Set(['input']);

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
function toCall(body: ModerationBody, context: PassedContext): PassedCall<ModerationResult> {
  const size = measureInput(body);
  return passedCall(body, context, {
    kind: 'moderation',
    bodyFor: (offer) => passedBody(body, offer, SENT),
    reader: (offer) =>
      createModerationReader({
        results: size.results,
        tokens: { max: tokensIn(size, offer, (bytes) => bytes), usual: tokensIn(size, offer, tokensOf) },
        priced: rateOf(offer.price.rates, 'prompt') > 0n,
        replyBytesMax: context.replyBytesMax,
      }),
    // One offer charges for calls and another one for tokens. Naming the price makes routing compare the costs.
    price: ({ price }) => price,
    estimate(offer) {
      const { service, model } = offer;
      if (size.images > 0 && !model!.inputModalities.includes('image'))
        throw new GatewayError('unprocessable', `${service} takes no images`, { param: 'input' });
      return { prompt: BigInt(tokensIn(size, offer, (bytes) => bytes)), call: 1n };
    },
  });
}

interface InputSize {
  /** Bytes of each text. */
  readonly texts: readonly number[];
  readonly images: number;
  readonly results: number;
}

/** Tokens that a model may put around a text. */
const TOKENS_OF_FRAME = 16;

function measureInput({ input }: ModerationBody): InputSize {
  if (typeof input === 'string') return { texts: [tokenizedBytes(input)], images: 0, results: 1 };
  const texts = input.map((one) => (typeof one === 'string' ? one : (one.text ?? '')));
  const images = input.filter((one) => typeof one === 'object' && one.image_url !== undefined).length;
  return {
    texts: texts.map(tokenizedBytes),
    images,
    results: typeof input[0] === 'string' ? input.length : 1,
  };
}

/** Tokens that a model reads, if `count` gives those of so many bytes. */
const tokensIn = ({ texts, images }: InputSize, offer: Offer, count: (bytes: number) => number): number =>
  texts.reduce((sum, bytes) => sum + Math.min(count(bytes) + TOKENS_OF_FRAME, offer.model!.contextLength), 0) +
  images * imageTokensMax(offer.model!, isOwn(offer));
