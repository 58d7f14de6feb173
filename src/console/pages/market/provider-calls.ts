import type { LockRecord } from '#billing';
import { PRIMITIVES } from '#config';
import { callProperties, micro, viewCall } from '../account/generation-view.ts';
import { LATEST, readCursor, writeCursor } from '../account/generations.ts';
import { objectOf, titled } from '../route-schemas.ts';

/** Lists the calls of a provider that ended before a position, which is a time in epoch milliseconds and an id. */
export type ListProviderCalls = (
  provider: string,
  before: { readonly at: number; readonly id: string },
  limit: number,
) => Promise<readonly LockRecord[]>;

export interface CallsQuery {
  readonly cursor?: string;
  readonly limit: number;
}

const { outcome, failed, error_code, tokens_prompt, tokens_completion, usage_details, request_id, flags, claims } =
  callProperties;

/** A call as its provider sees it: what it used and earned, and nothing about who called. */
const callSchema = titled(
  'CallOfProvider',
  objectOf({
    id: { type: 'string', description: 'Id of the call; its consumer knows it too' },
    ended_at: { type: 'string', description: 'RFC 3339' },
    request_id: { ...request_id, description: 'The `x-request-id` that your service got' },
    service: { type: ['string', 'null'] },
    tool: { type: ['string', 'null'] },
    primitive: { type: ['string', 'null'], enum: [...PRIMITIVES, null] },
    outcome,
    failed,
    error_code,
    tokens_prompt,
    tokens_completion,
    usage_details,
    charged_micro_usdc: { ...micro, description: 'Micro-USD that the consumer was charged.' },
    fee_micro_usdc: { ...micro, description: "Micro-USD of it that are the operator's." },
    earned_micro_usdc: {
      ...micro,
      description: 'Micro-USD that you earned. `/provider/refunds` has what was taken back.',
    },
    duration_ms: { type: ['integer', 'null'] },
    flags: { ...flags, description: 'Rules that your reply broke, such as `usage_missing`' },
    claims,
  }),
);

export const providerCallsSchema = {
  summary: 'List the calls of your services',
  operationId: 'listProviderCalls',
  description:
    'Calls that your services answered and that have ended, the one that ended last first, also those that earned nothing, and those that they answered with a failure (`failed`). `last_failures` of `/provider/services` has the requests that they did not answer as they should. Not allowed for a key with a spending limit, a rate, an expiry, a list of services or a price to ask above.',
  tags: ['Providers'],
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      cursor: { type: 'string', maxLength: 256, description: '`next_cursor` of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'Calls at most.' },
    },
  },
  response: {
    200: titled(
      'CallsOfProvider',
      objectOf({
        data: { type: 'array', items: callSchema },
        next_cursor: { type: ['string', 'null'], description: 'null on the last page.' },
      }),
    ),
  },
} as const;

/** One page of a provider's calls. Throws GatewayError `invalid_request`. */
export async function providerCalls(list: ListProviderCalls, provider: string, { cursor, limit }: CallsQuery) {
  const before = cursor === undefined ? { at: LATEST, id: '' } : readCursor(cursor);
  const records = await list(provider, before, limit);
  const last = records.at(-1);
  return {
    data: records.map(viewProviderCall),
    next_cursor: last && records.length === limit ? writeCursor({ at: last.resolvedAt!, id: last.id }) : null,
  };
}

function viewProviderCall(record: LockRecord) {
  const call = viewCall(record, []);
  return {
    id: call.id,
    ended_at: call.resolved_at,
    request_id: call.request_id,
    service: call.model,
    tool: call.tool,
    primitive: call.primitive,
    outcome: call.outcome,
    failed: call.failed,
    error_code: call.error_code,
    tokens_prompt: call.tokens_prompt,
    tokens_completion: call.tokens_completion,
    usage_details: call.usage_details,
    charged_micro_usdc: call.cost_micro_usdc,
    fee_micro_usdc: call.fee_micro_usdc,
    earned_micro_usdc: Number(record.charged - record.fee),
    duration_ms: call.generation_time,
    flags: call.flags,
    claims: call.claims,
  };
}
