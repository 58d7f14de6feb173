import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { DOCUMENTED } from '#http';
import { earningsOf, type Ledger, type Payouts, type Payout } from '#billing';
import { formatUsd } from '#billing/amounts';
import type { AdminGate, Identity } from '#auth';
import { parseProviderId, PROVIDER_ID_PATTERN, toCaip10 } from '#accounts/names';
import type { KnownProvider } from '#network';
import type { CallsNow, ServiceFailure, LastFailures } from '#observe';
import { ADMINISTRATION, dataOf, listOf, objectOf, titled, pageSchema, type PageRange } from '../route-schemas.ts';
import {
  amountOf,
  referenceOf,
  amountProperties,
  eitherAmount,
  referenceField,
  type AmountBody,
} from './body-fields.ts';

interface AdminProvidersDeps {
  readonly gate: AdminGate;
  readonly identity: Pick<Identity, 'providerId'>;
  readonly ledger: Pick<Ledger, 'balance'>;
  readonly payouts: Payouts;
  readonly list: (page: PageRange) => Promise<readonly KnownProvider[]>;
  /** null where no gateway runs, so that nobody could answer; as `lastFailures`. */
  readonly callsNow: (() => Promise<readonly CallsNow[]>) | null;
  readonly lastFailures: Pick<LastFailures, 'all'> | null;
  readonly isSeen: (provider: string) => Promise<boolean>;
  /** Whether it is the key under which a service of the configuration file is offered. */
  readonly isOwn: (provider: string) => boolean;
  readonly ban: (provider: string, reason: string) => Promise<unknown>;
  /** Resolves with false if the provider was not banned. */
  readonly unban: (provider: string) => Promise<boolean>;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
}

interface ProviderParams {
  readonly id: string;
}
interface PayoutBody extends AmountBody {
  readonly reference: string;
  readonly note?: string;
}
interface UndoBody {
  readonly reference: string;
  readonly reason: string;
}

const CREDIT = { adminRole: 'credit' } as const;
const CONFIGURE = { adminRole: 'configure' } as const;

export const providerParams = objectOf({
  id: {
    type: 'string',
    maxLength: 256,
    description: "The provider's public key; or its account: a wallet in CAIP-10, `tollgate:local:<name>`, `oauth:…`.",
    [DOCUMENTED]: { pattern: PROVIDER_ID_PATTERN },
  },
});
const reference = referenceField(
  'Your name of the payment, for example the reference of the bank transfer. The provider sees it.',
);
const payoutAnswer = dataOf(
  titled(
    'BookedPayout',
    objectOf({
      provider: { type: 'string', description: 'Public key' },
      reference: { type: 'string' },
      amount_micro_usdc: { type: 'integer' },
      duplicate: { type: 'boolean', description: 'It was booked before, so nothing was changed now.' },
      earnings_micro_usdc: { type: 'integer', description: 'What the provider has left to be paid.' },
      earnings_usd: { type: 'string' },
    }),
  ),
);

/** The operator's routes for providers and what they are paid. Register it under `/admin/v1`. */
export function adminProviderRoutes(deps: AdminProvidersDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', deps.gate);
    listAll(app, deps);
    listCalls(app, deps);
    listFailures(app, deps);
    banProvider(app, deps);
    liftBan(app, deps);
    bookPayout(app, deps);
    undoPayout(app, deps);
    listPayouts(app, deps);
  };
}

const providerStateSchema = titled(
  'ProviderState',
  objectOf({
    provider: { type: 'string', description: 'Public key' },
    account: { type: ['string', 'null'], description: 'CAIP-10; null for a provider that never registered' },
    name: { type: ['string', 'null'] },
    connected: { type: 'boolean' },
    registered_at: { type: ['string', 'null'], description: 'Of the last registration' },
    earnings_micro_usdc: { type: 'integer', description: 'What it has left to be paid' },
    earnings_usd: { type: 'string' },
    banned: {
      type: ['object', 'null'],
      required: ['reason', 'at'],
      properties: { reason: { type: 'string' }, at: { type: 'string' } },
    },
  }),
);

function listCalls(app: FastifyInstance, { callsNow }: AdminProvidersDeps): void {
  if (callsNow === null) return;
  const schema = {
    ...ADMINISTRATION,
    summary: 'List calls that run now, by provider',
    description:
      'The attempts of billed calls that run at each provider of each service, own ones too, in all workers of this gateway. The longest wait comes first. The figures are at most a second old. Services without a series of their own in the metrics are together, as `other`.',
    response: {
      200: listOf(
        titled(
          'CallsNow',
          objectOf({
            provider: { type: 'string', description: 'Name' },
            service: { type: 'string' },
            in_flight: { type: 'integer' },
            waiting: { type: 'integer', description: 'Those without a first byte' },
            oldest_wait_seconds: { type: 'number', description: 'How long the oldest of these waits; 0 without one' },
          }),
        ),
      ),
    },
  };
  app.get('/providers/calls', { schema }, async () => ({
    data: (await callsNow()).map(({ provider, service, inFlight, waiting, oldestWaitS }) => ({
      provider,
      service,
      in_flight: inFlight,
      waiting,
      oldest_wait_seconds: oldestWaitS,
    })),
  }));
}

function listFailures(app: FastifyInstance, { lastFailures }: AdminProvidersDeps): void {
  if (lastFailures === null) return;
  const schema = {
    ...ADMINISTRATION,
    summary: 'List the newest failures at providers',
    description:
      'The newest attempts that failed at each service of each provider, own ones too, as the process that answers saw them since its start: at most 20 of a service. The newest first. Those whose account had too many requests are not among them.',
    querystring: {
      ...pageSchema,
      properties: {
        ...pageSchema.properties,
        provider: { type: 'string', maxLength: 256, description: 'Only of the provider with this public key or name.' },
      },
    },
    response: {
      200: listOf(failureSchema),
    },
  };
  app.get<{ Querystring: PageRange & { readonly provider?: string } }>(
    '/providers/failures',
    { schema },
    async ({ query: { provider = null, limit, offset } }) => ({
      data: lastFailures
        .all(provider)
        .slice(offset, offset + limit)
        .map(viewFailure),
    }),
  );
}

export const failedFields = {
  at: { type: 'string', description: 'RFC 3339' },
  request_id: { type: 'string', description: 'The `x-request-id` that the service got' },
  status: { type: ['integer', 'null'], description: 'HTTP status of the service; null without one' },
  reason: { type: 'string' },
  said: {
    type: ['string', 'null'],
    description: 'The first words of the service, at most 300 characters; null without any',
  },
} as const;

export const viewFailed = ({ at, requestId, status, reason, replyText }: ServiceFailure) => ({
  at: new Date(at).toISOString(),
  request_id: requestId,
  status,
  reason,
  said: replyText,
});

export const failureSchema = titled(
  'FailureAtProvider',
  objectOf({
    provider: { type: 'string', description: 'Name' },
    service: { type: 'string' },
    call: { type: 'string', description: 'Id of the call' },
    account: { type: 'string', description: 'The account that made it' },
    ...failedFields,
  }),
);

export const viewFailure = (failure: ReturnType<LastFailures['all']>[number]) => ({
  provider: failure.provider,
  service: failure.service,
  call: failure.call,
  account: failure.account,
  ...viewFailed(failure),
});

function listAll(app: FastifyInstance, deps: AdminProvidersDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List connected and former providers',
    description:
      'Providers that ever registered services, and those that are banned, with what they have left to be paid. Providers of the configuration file are not among them.',
    querystring: pageSchema,
    response: { 200: listOf(providerStateSchema) },
  };
  app.get<{ Querystring: PageRange }>('/providers', { schema }, async ({ query }) => {
    const known = await deps.list(query);
    return { data: await Promise.all(known.map((one) => viewProvider(one, deps))) };
  });
}

async function viewProvider(
  { provider, account, name, isConnected, registeredAt, ban }: KnownProvider,
  deps: AdminProvidersDeps,
) {
  const remaining = await earningsLeft(provider, deps);
  return {
    provider,
    account: account === null ? null : toCaip10(account, deps.networks),
    name,
    connected: isConnected && ban === null,
    registered_at: registeredAt === null ? null : new Date(registeredAt).toISOString(),
    earnings_micro_usdc: Number(remaining),
    earnings_usd: formatUsd(remaining),
    banned: ban === null ? null : { reason: ban.reason, at: new Date(ban.at).toISOString() },
  };
}

const banAnswer = dataOf(
  titled(
    'BannedProvider',
    objectOf({
      provider: { type: 'string', description: 'Public key' },
      banned: { type: 'boolean' },
      changed: { type: 'boolean', description: 'False if it was so before' },
      seen: {
        type: 'boolean',
        description: 'False if it never connected here. A ban holds if it comes, but the key may be mistyped.',
      },
      earnings_micro_usdc: {
        type: 'integer',
        description: 'What the provider has left to be paid. A ban does not change it',
      },
      earnings_usd: { type: 'string' },
    }),
  ),
);

function banProvider(app: FastifyInstance, deps: AdminProvidersDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Ban a provider',
    description:
      'On all gateways at once: its services are gone, its proxies are disconnected as soon as their running calls have ended (30 s at most), and it cannot connect again. Running calls are settled as always. Its earnings stay on its account: it can withdraw them over a chain, and you can pay them.',
    params: providerParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ reason: 'answers with another model than it names' }],
      required: ['reason'],
      properties: {
        reason: { type: 'string', minLength: 1, maxLength: 300, description: 'Why. The provider is told.' },
      },
    },
    response: { 200: banAnswer },
  };
  app.post<{ Params: ProviderParams; Body: { readonly reason: string } }>(
    '/providers/:id/ban',
    { schema, config: CONFIGURE },
    async ({ params, body }) => {
      const provider = providerNamed(params.id, deps);
      if (deps.isOwn(provider))
        throw new GatewayError(
          'unprocessable',
          `${provider} sells services of your own configuration file, which no ban stops: remove them from the file and reload`,
          { param: 'id' },
        );
      await deps.ban(provider, body.reason);
      return { data: await viewBan(provider, { banned: true, changed: true }, deps) };
    },
  );
}

function liftBan(app: FastifyInstance, deps: AdminProvidersDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Lift the ban of a provider',
    description: 'The provider can connect again, if `tunnel.providers` admits it. Its proxy must be started again.',
    params: providerParams,
    response: { 200: banAnswer },
  };
  app.delete<{ Params: ProviderParams }>('/providers/:id/ban', { schema, config: CONFIGURE }, async ({ params }) => {
    const provider = providerNamed(params.id, deps);
    const changed = await deps.unban(provider);
    return { data: await viewBan(provider, { banned: false, changed }, deps) };
  });
}

async function viewBan(
  provider: string,
  state: { readonly banned: boolean; readonly changed: boolean },
  deps: AdminProvidersDeps,
) {
  const remaining = await earningsLeft(provider, deps);
  const seen = await deps.isSeen(provider);
  return { provider, ...state, seen, earnings_micro_usdc: Number(remaining), earnings_usd: formatUsd(remaining) };
}

function bookPayout(app: FastifyInstance, deps: AdminProvidersDeps): void {
  const note = { type: 'string', maxLength: 500, description: 'More about it. The provider sees it.' };
  const schema = {
    ...ADMINISTRATION,
    summary: 'Book a payout',
    description:
      'Books earnings that you paid to a provider outside of the gateway, for example by bank transfer. No money is sent. The amount is taken from the earnings of the provider, and can be at most what is left of them. The `reference` counts once: a repetition changes nothing, and a repetition with another amount or provider is refused.',
    params: providerParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ amount_usd: 25, reference: 'SEPA-2026-11-30-acme' }],
      required: ['reference'],
      ...eitherAmount,
      properties: { ...amountProperties, reference, note },
    },
    response: { 200: payoutAnswer },
  };
  app.post<{ Params: ProviderParams; Body: PayoutBody }>(
    '/providers/:id/payouts',
    { schema, config: CREDIT },
    async ({ params, body }) => {
      const provider = await findEarner(params.id, deps);
      const amount = amountOf(body);
      const reference = referenceOf(body);
      const booked = await deps.payouts.pay({ provider, amount, reference, note: body.note ?? '' });
      if (!booked.ok) throw refusal(booked.reason, await earningsLeft(provider, deps));
      return { data: { ...(await view(provider, reference, amount, deps)), duplicate: booked.duplicate } };
    },
  );
}

function undoPayout(app: FastifyInstance, deps: AdminProvidersDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Take a payout back',
    description:
      'Corrects a payout that was booked by mistake: its amount is added to the earnings of the provider again. Its reference cannot be used for another payout.',
    params: providerParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ reference: 'SEPA-2026-11-30-acme', reason: 'the bank returned it' }],
      required: ['reference', 'reason'],
      properties: {
        reference,
        reason: { type: 'string', minLength: 1, maxLength: 500, description: 'Why. The provider sees it.' },
      },
    },
    response: { 200: payoutAnswer },
  };
  app.post<{ Params: ProviderParams; Body: UndoBody }>(
    '/providers/:id/payouts/undo',
    { schema, config: CREDIT },
    async ({ params, body }) => {
      const provider = providerNamed(params.id, deps);
      const undone = await deps.payouts.undo({ provider, ...body });
      if (undone === null)
        throw new GatewayError('not_found', 'This provider has no payout with this reference', { param: 'reference' });
      const { amount, duplicate } = undone;
      return { data: { ...(await view(provider, body.reference, amount, deps)), duplicate } };
    },
  );
}

function listPayouts(app: FastifyInstance, deps: AdminProvidersDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List the payouts of a provider',
    description: 'Payouts that were booked here, the newest first. Withdrawals over chains are not among them.',
    params: providerParams,
    querystring: pageSchema,
    response: { 200: listOf(payoutSchema) },
  };
  app.get<{ Params: ProviderParams; Querystring: PageRange }>(
    '/providers/:id/payouts',
    { schema },
    async ({ params, query }) => {
      const payouts = await deps.payouts.list(providerNamed(params.id, deps), query);
      return { data: payouts.map(viewPayout) };
    },
  );
}

async function view(provider: string, reference: string, amount: bigint, deps: AdminProvidersDeps) {
  const remaining = await earningsLeft(provider, deps);
  return {
    provider,
    reference,
    amount_micro_usdc: Number(amount),
    earnings_micro_usdc: Number(remaining),
    earnings_usd: formatUsd(remaining),
  };
}

const earningsLeft = async (provider: string, { ledger }: Pick<AdminProvidersDeps, 'ledger'>) =>
  (await ledger.balance(earningsOf(provider)))?.available ?? 0n;

function refusal(reason: 'insufficient' | 'used' | 'undone', remaining: bigint): GatewayError {
  switch (reason) {
    case 'insufficient':
      return new GatewayError(
        'unprocessable',
        `The provider has ${formatUsd(remaining)} USD of earnings left, so a payout can be at most that`,
        { param: 'amount_usd' },
      );
    case 'used':
      return new GatewayError('idempotency_conflict', 'This reference was already used for another payout', {
        param: 'reference',
      });
    case 'undone':
      return new GatewayError(
        'idempotency_conflict',
        'The payout with this reference was taken back: book the new one with another reference',
        { param: 'reference' },
      );
  }
}

/** The public key of a provider that has earned something. Throws GatewayError `not_found` or `invalid_request`. */
async function findEarner(id: string, deps: AdminProvidersDeps): Promise<string> {
  const provider = providerNamed(id, deps);
  if ((await deps.ledger.balance(earningsOf(provider))) === null)
    throw new GatewayError('not_found', `The provider ${provider} has never earned anything here`);
  return provider;
}

/**
 * The public key of the provider that an operator names by its key, its wallet or its account. Throws GatewayError
 * `invalid_request`.
 */
export function providerNamed(id: string, { identity }: Pick<AdminProvidersDeps, 'identity'>): string {
  const provider = parseProviderId(id, identity);
  if (provider !== null) return provider;
  throw new GatewayError(
    'invalid_request',
    `${JSON.stringify(id.slice(0, 100))} is no provider: give its public key, or its account: a wallet in CAIP-10 (eip155:…, solana:…), tollgate:local:<name> or oauth:<issuer>:<subject>`,
    { param: 'id' },
  );
}

export const payoutSchema = titled(
  'Payout',
  objectOf({
    reference: { type: 'string', description: "The operator's name of the payment" },
    amount_micro_usdc: { type: 'integer' },
    amount_usd: { type: 'string' },
    note: { type: 'string' },
    paid_at: { type: 'string', description: 'When the operator booked it' },
    undone_at: {
      type: ['string', 'null'],
      description: 'When the operator took it back; null for a payout that holds',
    },
    undone_reason: { type: ['string', 'null'] },
  }),
);

export const viewPayout = ({ reference, amount, note, at, undone }: Payout) => ({
  reference,
  amount_micro_usdc: Number(amount),
  amount_usd: formatUsd(amount),
  note,
  paid_at: new Date(at).toISOString(),
  undone_at: undone === null ? null : new Date(undone.at).toISOString(),
  undone_reason: undone === null ? null : undone.reason,
});
