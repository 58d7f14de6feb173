import { tokenizedBytes, type Offer } from '#catalog';

import { passedBody, passedCall } from '../passing/passed-call.ts';
import type { PassedCall, PassedContext } from '../passing/passed-route.ts';
import { type EmbeddingsBody, EMBEDDINGS_PARAMETERS } from './embeddings-schema.ts';
import { formOf } from './embedding-forms.ts';
import { createEmbeddingsReader, type EmbeddingsResult, type InputSize } from './embeddings-reader.ts';

const SENT: ReadonlySet<string> = new Set(['input', ...EMBEDDINGS_PARAMETERS]);

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function embeddingsToCall(body: EmbeddingsBody, context: PassedContext): PassedCall<EmbeddingsResult> {
  const size = measureInput(body);
  const form = formOf(body);
  const { replyBytesMax, passes } = context;
  return passedCall(body, context, {
    kind: 'embeddings',
    bodyFor: (offer) => passedBody(body, offer, SENT),
    reader: (offer) =>
      createEmbeddingsReader({
        size,
        form,
        tokensMax: plausibleTokens(size, offer),
        replyBytesMax,
        passesAs: passes ? offer.service : null,
      }),
    // Embeddings of one model differ slightly between providers.
    staysAs: `embeddings ${body.model}`,
    estimate: ({ model }) => ({ prompt: BigInt(tokensMax(size, model!.contextLength)) }),
  });
}

/** Tokens that a service may put around an input: special tokens, and its own words for the task. */
const TOKENS_OF_FRAME = 16;
/** The special tokens at the beginning and the end of an input. */
const TOKENS_OF_ENDS = 2;

function measureInput({ input }: Pick<EmbeddingsBody, 'input'>): InputSize {
  if (typeof input === 'string') return { each: [tokenizedBytes(input)], counted: false };
  if (typeof input[0] === 'number') return { each: [input.length], counted: true };
  if (typeof input[0] === 'string') return { each: (input as readonly string[]).map(tokenizedBytes), counted: false };
  return { each: (input as readonly (readonly number[])[]).map(({ length }) => length), counted: true };
}

/** The most tokens that a model with this context makes of the inputs. They are locked. */
const tokensMax = (size: InputSize, contextLength: number): number => tokensWith(TOKENS_OF_FRAME, size, contextLength);

/**
 * The most tokens that are charged. A provider that dialled in cannot be trusted to add its own words to each of 2,048
 * inputs of one letter, which would cost seventeen times the input.
 */
const plausibleTokens = (size: InputSize, { endpoint, model }: Pick<Offer, 'endpoint' | 'model'>): number =>
  tokensWith(endpoint.kind === 'direct' ? TOKENS_OF_FRAME : TOKENS_OF_ENDS, size, model!.contextLength);

const tokensWith = (frame: number, { each }: InputSize, contextLength: number): number =>
  each.reduce((sum, one) => sum + Math.min(one + frame, contextLength), 0);
