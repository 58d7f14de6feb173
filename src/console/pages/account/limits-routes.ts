import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { outboundUrlFault } from '#security';
import { DOCUMENTED } from '#http';
import type { Pipeline } from '#call';
import {
  refuseRestricted,
  requireAdmission,
  requireFreshSignature,
  requireFullRights,
  type KeyStore,
  type Nonces,
  type AdmissionOf,
} from '#auth';
import { LIMIT_RESETS } from '#accounts/names';
import type { BudgetNotices } from '#webhooks';
import { dataOf, listOf, objectOf, titled } from '../route-schemas.ts';
import {
  limitsBodySchema,
  limitsSchema,
  oneLimitsSchema,
  changeLimits,
  parseLimits,
  viewLimits,
  type LimitsBody,
  type LimitsDeps,
} from './limits.ts';
import { limitSetByProperty } from './keys.ts';

interface OwnLimitsDeps extends LimitsDeps {
  readonly admit: Pipeline['admit'];
  readonly keys: Pick<KeyStore, 'find'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly notices: Pick<BudgetNotices, 'list' | 'webhooks'>;
  /** In development mode: webhook URLs may be private addresses and may lack TLS. */
  readonly allowPrivate: boolean;
}

interface WebhookBody {
  readonly url: string;
  readonly secret?: string | null;
}

const tags = ['Account'];
const OF_LIMITS = { what: 'change limits', instead: 'ask the operator' };
const NOTICES = 50;

export function limitsRoutes(deps: OwnLimitsDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    addLimits(app, deps, admissionOf);
    addWebhook(app, deps, admissionOf);
    addNotices(app, deps, admissionOf);
  };
}

const both = dataOf({
  ...limitsSchema,
  title: 'OwnLimits',
  properties: { ...limitsSchema.properties, operator: { ...limitsSchema, description: 'What the operator has set.' } },
  required: [...limitsSchema.required, 'operator'],
});

function addLimits(app: FastifyInstance, deps: OwnLimitsDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: "Show your account's limits",
    description: 'Budgets and rates of all your keys together: yours, and under `operator` those of the operator.',
    tags,
    response: { 200: both },
  };
  app.get('/limits', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const { account, key } = admissionOf(request).caller;
    await refuseRestricted(deps.keys, key, "see the account's limits");
    const [own, operators] = await Promise.all([
      deps.limits.get(account, 'account').then((limits) => viewLimits(account, 'account', limits, deps)),
      deps.limits.get(account, 'operator').then((limits) => viewLimits(account, 'operator', limits, deps)),
    ]);
    return { data: { ...own, operator: operators } };
  });
  const changed = {
    summary: "Change your account's limits",
    description:
      'Changes only the given fields: budgets and rates of all your keys together. `budgets` replaces the list. Those of the operator hold beside them. A wallet signs in for this with a nonce of `/auth/nonce`.',
    tags,
    body: limitsBodySchema,
    response: { 200: oneLimitsSchema },
  };
  app.patch<{ Body: LimitsBody }>('/limits', { config: { actsAs: 'admin' }, schema: changed }, async (request) => {
    const { caller } = admissionOf(request);
    await requireFullRights(deps.keys, caller, OF_LIMITS);
    // The body is checked first, so that an invalid body doesn't use up the nonce.
    const changes = parseLimits(request.body);
    await requireFreshSignature(caller, deps.nonces);
    return changeLimits(caller.account, 'account', changes, deps);
  });
}

const webhookSchema = titled(
  'NoticeWebhook',
  objectOf({
    url: { type: ['string', 'null'], description: 'null: no notices are sent.' },
    signed: { type: 'boolean' },
  }),
);

function addWebhook(app: FastifyInstance, deps: OwnLimitsDeps, admissionOf: AdmissionOf): void {
  const { webhooks } = deps.notices;
  const schema = {
    summary: 'Show the webhook of your budgets',
    description: 'The address that gets a notice when a budget is spent to a percentage. The secret is not shown.',
    tags,
    response: { 200: dataOf(webhookSchema) },
  };
  app.get('/limits/webhook', { config: { actsAs: 'admin' }, schema }, async (request) => {
    const { caller } = admissionOf(request);
    await requireFullRights(deps.keys, caller, { what: 'see the webhook', instead: 'ask the operator' });
    const webhook = await webhooks.find(caller.account);
    return { data: { url: webhook?.url ?? null, signed: webhook !== null && webhook.secret !== null } };
  });
  const set = {
    summary: 'Set the webhook of your budgets',
    description:
      'Each budget that is spent to a percentage of its `limit_notify` is posted there once. With a `secret` the header `x-tollgate-signature` is `t=<epoch seconds>,v1=<hex>`: HMAC-SHA256 of the time, a full stop and the body. A `url` of null removes it. A wallet signs in for this with a nonce of `/auth/nonce`.',
    tags,
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['url'],
      examples: [{ url: 'https://example.com/budgets', secret: 'a long random text' }],
      properties: {
        url: { type: ['string', 'null'], maxLength: 2_048, [DOCUMENTED]: { format: 'uri', pattern: '^https://' } },
        secret: { type: ['string', 'null'], minLength: 16, maxLength: 256 },
      },
    },
    response: { 200: dataOf(webhookSchema) },
  };
  app.patch<{ Body: WebhookBody }>('/limits/webhook', { config: { actsAs: 'admin' }, schema: set }, async (request) => {
    const { caller } = admissionOf(request);
    await requireFullRights(deps.keys, caller, OF_LIMITS);
    const { url, secret = null } = request.body;
    const fault = url === null ? null : outboundUrlFault(url, deps);
    if (fault !== null) throw new GatewayError('invalid_request', `url ${fault}`, { param: 'url' });
    await requireFreshSignature(caller, deps.nonces);
    if (url === null) await webhooks.delete(caller.account);
    else await webhooks.put(caller.account, { url, secret });
    return { data: { url, signed: url !== null && secret !== null } };
  });
}

function addNotices(app: FastifyInstance, deps: OwnLimitsDeps, admissionOf: AdmissionOf): void {
  const notice = objectOf(
    {
      event: { type: 'string' },
      time: { type: 'string' },
      account: { type: 'string' },
      of: { type: 'string', enum: ['key', 'member', 'account', 'operator'], description: 'Whose budget.' },
      key: objectOf({ hash: { type: 'string' }, name: { type: 'string' }, limit_set_by: limitSetByProperty }, [
        'limit_set_by',
      ]),
      member: { type: 'string' },
      percent: { type: 'integer' },
      limit_usd: { type: 'string' },
      spent_usd: { type: 'string', description: 'When it was seen.' },
      limit_reset: { type: ['string', 'null'], enum: [...LIMIT_RESETS, null] },
      limit_soft: { type: 'boolean' },
      state: {
        type: 'string',
        enum: ['waiting', 'told'],
        description: '`waiting` until the webhook gets the notice, then `told`.',
      },
    },
    ['key', 'member'],
  );
  const schema = {
    summary: 'List the notices of your budgets',
    description: `The last ${NOTICES}, the newest first.`,
    tags,
    response: { 200: listOf(notice) },
  };
  app.get('/limits/notices', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const { caller } = admissionOf(request);
    await refuseRestricted(deps.keys, caller.key, "see the account's limits");
    const notices = await deps.notices.list(caller.account, NOTICES);
    return { data: notices.map(({ body, state }) => ({ ...body, state })) };
  });
}
