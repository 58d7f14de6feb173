import { hash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { type ReplySink, PARSED_JSON } from '#http';
import { GatewayError } from '#errors';
import { formatUsd, toUsdNumber, type Settlement } from '#billing/amounts';
import {
  addPaidRoute,
  bodyFrom,
  onceSettled,
  openCall,
  type PaidRoute,
  type Payer,
  payerOf,
  type StartedProviderCall,
  takeBytes,
  wasCharged,
} from '#gateway';
import { NO_PAYMENTS } from '#payments';
import { requireAdmission } from '#auth';
import { type ChatDeps, paidRouteDeps } from '../chat/chat-routes.ts';
import { createReadBody } from '../translated/translated-route.ts';
import { checkInput, embeddingsAnswerSchema, type EmbeddingsBody, embeddingsSchema } from './embeddings-schema.ts';
import { embeddingsToCall } from './embeddings-to-call.ts';
import { addAlteredHeaders } from '../chat/altered-headers.ts';
import type { EmbeddingsResult } from './embeddings-reader.ts';

const PATH = '/embeddings';

type StartedEmbeddings = StartedProviderCall<EmbeddingsResult | null>;

/** `POST /embeddings`. Register it under `/api/v1`. */
export function embeddingsRoutes(deps: ChatDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits, upstream, billing } = config;
  const readBody = createReadBody<EmbeddingsBody>(limits, embeddingsSchema);

  const route: PaidRoute<EmbeddingsRequest, StartedEmbeddings> = {
    path: PATH,
    options: {
      schema: {
        summary: 'Create embeddings',
        operationId: 'createEmbeddings',
        description:
          'Embeddings of texts or tokens by a model whose output is embeddings. The price is per input token. Fields that are not listed here go to providers that list them.',
        tags: ['Chat'],
        consumes: ['application/json'],
        body: embeddingsSchema,
        response: { 200: embeddingsAnswerSchema },
      },
      config: { clientsAppend: true },
    },
    async decode(request, admitted) {
      const { headers } = request;
      const bytes = bodyFrom(request);
      const body = await readBody(bytes, headers);
      checkInput(body);
      const bodyHash = () => hash('sha256', `${PATH} ${hash('sha256', bytes)}`);
      return { body, ...(await payerOf(payments, headers, admitted, bodyHash)) };
    },
    answer({ body, caller, payment }, { request, onError }) {
      const { request: call, dropped } = embeddingsToCall(body, {
        caller,
        payment,
        requestId: request.id,
        headers: request.headers,
        replyBytesMax: upstream.replyBytesMax,
        receipts: billing.receipts,
      });
      return {
        noun: 'Embeddings',
        model: body.model,
        open: (callId, gone) => openCall(pipeline, call, callId, gone),
        write: (opened, sink) => writeEmbeddings(opened, dropped, sink, onError),
      };
    },
  };
  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.chatBodyBytesMax, PARSED_JSON);
    addPaidRoute(app, paidRouteDeps(deps, admissionOf), route);
  };
}

interface EmbeddingsRequest extends Payer {
  readonly body: EmbeddingsBody;
}

/**
 * Writes the embeddings of a call to its client, after the settlement. Resolves with whether anything was charged;
 * false if the client is gone. Throws the errors of the call.
 */
const writeEmbeddings = (
  opened: StartedEmbeddings,
  dropped: () => readonly string[],
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, (settled) => {
    if (settled.result === null)
      throw new GatewayError('provider_unavailable', 'The embeddings did not arrive in time');
    const pieces = piecesOf(settled.result, settled.settlement, opened.call.service);
    const headers: Record<string, string | number> = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': pieces.reduce((sum, { byteLength }) => sum + byteLength, 0),
      'x-generation-id': opened.id,
      'x-provider': settled.providerName,
      'x-cost-usd': formatUsd(settled.settlement.charged),
    };
    addAlteredHeaders(headers, { dropped: dropped(), maxTokens: null });
    if (settled.receipt !== null) headers['x-receipt'] = settled.receipt;
    sink.head(200, headers);
    const last = pieces.pop()!;
    for (const piece of pieces) sink.write(piece);
    sink.end(last);
    return wasCharged(settled);
  });

/** The provider's bytes, with the name that was called and the billed usage. Not empty. */
function piecesOf(
  { bytes, members, usage }: EmbeddingsResult,
  { charged, fee }: Settlement,
  service: string,
): Uint8Array[] {
  const billed = {
    ...usage,
    cost: toUsdNumber(charged),
    cost_details: {
      charged_usd: formatUsd(charged),
      fee_usd: formatUsd(fee),
      // Clients of this API parse both members as numbers, and fail if one is missing.
      upstream_inference_prompt_cost: toUsdNumber(charged),
      upstream_inference_completions_cost: 0,
    },
  };
  const values = { usage: JSON.stringify(billed), model: JSON.stringify(service) };
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const { name, start, end } of members) {
    pieces.push(bytes.subarray(at, start), Buffer.from(values[name]));
    at = end;
  }
  const missing = (['model', 'usage'] as const).filter((name) => !members.some((member) => member.name === name));
  if (missing.length === 0) return [...pieces, bytes.subarray(at)];
  const brace = bytes.lastIndexOf('}');
  const added = missing.map((name) => `,"${name}":${values[name]}`).join('');
  return [...pieces, bytes.subarray(at, brace), Buffer.from(`${added}}`)];
}
