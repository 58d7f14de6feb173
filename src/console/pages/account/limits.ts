import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { DOCUMENTED } from '#http';
import { withCarried, type Ledger } from '#billing';
import { formatUsd, toUsdNumber } from '#billing/amounts';
import {
  budgetName,
  USUAL_PERCENTAGES,
  type AccountLimits,
  type BudgetRule,
  type LimitsStore,
  type LimitsSubject,
  type TagBudgetRule,
  tagBudgetName,
} from '#accounts';
import { budgetAt, LIMIT_RESETS, type LimitReset, parseTag, TAG_FORM } from '#accounts/names';
import { ADMINISTRATION, dataOf, objectOf, titled } from '../route-schemas.ts';
import { documentedUsd, parseUsdField } from './body-fields.ts';
import { notifyProperty, rateProperty } from './keys.ts';
import { accountParams, findAccount, type AdminAccountsDeps, type AccountParams } from './admin-accounts.ts';

/* The limits of an account or of a member: what the operator and the owner can set, and the form of the answers. */

export interface LimitsDeps {
  readonly limits: Pick<LimitsStore, 'limitsOf' | 'get' | 'change'>;
  readonly ledger: Pick<Ledger, 'budget'>;
  readonly now: () => number;
}

interface BudgetBody {
  readonly limit: number;
  readonly limit_reset?: LimitReset | null;
  readonly limit_soft?: boolean;
  readonly limit_notify?: readonly number[] | null;
}

interface TagBudgetBody {
  readonly tag: string;
  readonly limit: number;
  readonly limit_reset: LimitReset;
}

export interface LimitsBody {
  readonly budgets?: readonly BudgetBody[];
  readonly tag_budgets?: readonly TagBudgetBody[];
  readonly requests_per_minute?: number | null;
  readonly tokens_per_minute?: number | null;
}

const BUDGETS_MAX = LIMIT_RESETS.length + 1;

const budgetsProperty = {
  type: 'array',
  maxItems: BUDGETS_MAX,
  description:
    'What may be spent in each period. At most one of each reset. It counts everything spent in the period, also before it was set. A budget that never resets counts everything that was ever spent.',
  items: {
    title: 'BudgetRule',
    type: 'object',
    additionalProperties: false,
    required: ['limit'],
    properties: {
      limit: { type: 'number', minimum: 0, description: 'USD in each period.', [DOCUMENTED]: documentedUsd },
      limit_reset: {
        type: ['string', 'null'],
        enum: [...LIMIT_RESETS, null],
        description: 'When the budget resets, at 00:00 UTC; null, the default, is never.',
      },
      limit_soft: {
        type: 'boolean',
        description: 'True: the budget refuses no calls and only sends notices. Default false.',
      },
      limit_notify: {
        ...notifyProperty,
        description: 'Percentages of the limit at which a notice is sent. Default 50, 80 and 100.',
      },
    },
  },
} as const;

const TAG_BUDGETS_MAX = 50;

const tagProperty = {
  type: 'string',
  maxLength: 97,
  description: 'The tag as `name=value`.',
  [DOCUMENTED]: { pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,31}=[ -~]{1,64}$' },
} as const;

const tagBudgetsProperty = {
  type: 'array',
  maxItems: TAG_BUDGETS_MAX,
  description:
    'What calls with a tag may spend in each period, besides `budgets`. At most one of each tag and reset. A call that could exceed it is refused. It counts everything that such calls spent in the period, also before it was set.',
  items: {
    title: 'TagBudgetRule',
    type: 'object',
    additionalProperties: false,
    required: ['tag', 'limit', 'limit_reset'],
    properties: {
      tag: tagProperty,
      limit: { type: 'number', minimum: 0, description: 'USD in each period.', [DOCUMENTED]: documentedUsd },
      limit_reset: { type: 'string', enum: [...LIMIT_RESETS], description: 'When it resets, at 00:00 UTC.' },
    },
  },
} as const;

export const limitsBodySchema = {
  title: 'LimitsChange',
  type: 'object',
  additionalProperties: false,
  examples: [{ budgets: [{ limit: 100, limit_reset: 'monthly', limit_notify: [80, 100] }], requests_per_minute: 600 }],
  properties: {
    budgets: budgetsProperty,
    tag_budgets: tagBudgetsProperty,
    requests_per_minute: rateProperty('requests of all keys together', 'no limit besides those of the keys'),
    tokens_per_minute: rateProperty('tokens of all keys together', 'no limit besides those of the keys'),
  },
} as const;

const budgetSchema = titled(
  'Budget',
  objectOf({
    limit: { type: 'number', description: 'USD in each period.' },
    limit_remaining: { type: 'number', description: 'What running calls have locked is counted as spent.' },
    limit_reset: { type: ['string', 'null'], enum: [...LIMIT_RESETS, null] },
    limit_soft: { type: 'boolean' },
    limit_notify: { type: 'array', items: { type: 'integer' } },
    usage: { type: 'number', description: 'USD spent in this period.' },
    resets_at: { type: ['string', 'null'] },
  }),
);

export const limitsSchema = titled(
  'Limits',
  objectOf({
    budgets: { type: 'array', items: budgetSchema },
    tag_budgets: {
      type: 'array',
      description: 'Budgets of the calls with a tag.',
      items: titled(
        'TagBudget',
        objectOf({
          tag: { type: 'string', description: '`name=value`' },
          limit: { type: 'number', description: 'USD in each period.' },
          limit_remaining: { type: 'number' },
          limit_reset: { type: 'string', enum: [...LIMIT_RESETS] },
          usage: { type: 'number', description: 'USD spent in this period.' },
          resets_at: { type: ['string', 'null'] },
        }),
      ),
    },
    requests_per_minute: { type: ['integer', 'null'] },
    tokens_per_minute: { type: ['integer', 'null'] },
  }),
);
export const oneLimitsSchema = dataOf(limitsSchema);

export async function viewLimits(
  account: string,
  subject: LimitsSubject,
  limits: AccountLimits,
  { ledger, now }: Pick<LimitsDeps, 'ledger' | 'now'>,
) {
  const name = budgetName(account, subject);
  const budgets = limits.budgets.map(async (rule) => {
    const { id, resetsAt, carried, unsummed } = budgetAt(name, rule, now());
    const { spent, locked } = withCarried(await ledger.budget(id), carried);
    const remaining = unsummed === undefined ? rule.limit - spent - locked : 0n;
    return {
      limit: toUsdNumber(rule.limit),
      limit_remaining: toUsdNumber(remaining > 0n ? remaining : 0n),
      limit_reset: rule.limitReset,
      limit_soft: rule.limitSoft,
      limit_notify: rule.notify,
      usage: toUsdNumber(spent),
      resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
    };
  });
  const tagBudgets = limits.tagBudgets.map(async (rule) => {
    const ofTag = tagBudgetName(account, subject, rule);
    const { id, resetsAt, carried, unsummed } = budgetAt(ofTag, { ...rule, limitSoft: false }, now());
    const { spent, locked } = withCarried(await ledger.budget(id), carried);
    const remaining = unsummed === undefined ? rule.limit - spent - locked : 0n;
    return {
      tag: `${rule.name}=${rule.value}`,
      limit: toUsdNumber(rule.limit),
      limit_remaining: toUsdNumber(remaining > 0n ? remaining : 0n),
      limit_reset: rule.limitReset,
      usage: toUsdNumber(spent),
      resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
    };
  });
  return {
    budgets: await Promise.all(budgets),
    tag_budgets: await Promise.all(tagBudgets),
    requests_per_minute: limits.requestsPerMinute,
    tokens_per_minute: limits.tokensPerMinute,
  };
}

/**
 * Reads the changes of a body. Missing members are not changed. Throws GatewayError `invalid_request` for an invalid
 * amount, or for two budgets with the same reset.
 */
export function parseLimits(body: LimitsBody): Partial<AccountLimits> {
  const {
    budgets,
    tag_budgets: tagBudgets,
    requests_per_minute: requestsPerMinute,
    tokens_per_minute: tokensPerMinute,
  } = body;
  return {
    ...(budgets === undefined ? {} : { budgets: parseBudgets(budgets) }),
    ...(tagBudgets === undefined ? {} : { tagBudgets: parseTagBudgets(tagBudgets) }),
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
  };
}

function parseBudgets(bodies: readonly BudgetBody[]): readonly BudgetRule[] {
  const seen = new Map<LimitReset | null, BudgetRule>();
  for (const [index, body] of bodies.entries()) {
    const limit = parseUsdField(body.limit, `budgets[${index}].limit`);
    const limitReset = body.limit_reset ?? null;
    const before = seen.get(limitReset);
    if (before)
      throw new GatewayError(
        'invalid_request',
        `Two budgets have limit_reset ${limitReset ?? 'null'}: ${formatUsd(before.limit)} and ${formatUsd(limit)} USD. Send only one`,
        { param: `budgets[${index}].limit_reset` },
      );
    const notify = body.limit_notify === undefined ? USUAL_PERCENTAGES : (body.limit_notify ?? []);
    seen.set(limitReset, { limit, limitReset, limitSoft: body.limit_soft ?? false, notify });
  }
  return [...seen.values()];
}

function parseTagBudgets(bodies: readonly TagBudgetBody[]): readonly TagBudgetRule[] {
  const known = new Set<string>();
  return bodies.map(({ tag, limit, limit_reset: limitReset }, index) => {
    const place = `tag_budgets[${index}]`;
    const pair = parseTag(tag);
    if (pair === null)
      throw new GatewayError('invalid_request', `${place}.tag is name=value, such as feature=search: ${TAG_FORM}`, {
        param: `${place}.tag`,
      });
    const [name, value] = pair;
    const key = `${limitReset} ${name}=${value}`;
    if (known.has(key))
      throw new GatewayError('invalid_request', `Two ${limitReset} budgets are of ${name}=${value}. Send only one`, {
        param: `${place}.tag`,
      });
    known.add(key);
    return { name, value, limit: parseUsdField(limit, `${place}.limit`), limitReset };
  });
}

export async function changeLimits(
  account: string,
  subject: LimitsSubject,
  changes: Partial<AccountLimits>,
  deps: LimitsDeps,
) {
  const limits = await deps.limits.change(account, subject, changes);
  return { data: await viewLimits(account, subject, limits, deps) };
}

const LIMITS = '/accounts/:id/limits';
/** Limits need the role configure. With the role credit one must not be able to lift an account's limits. */
const CONFIGURE = { adminRole: 'configure' } as const;

/**
 * Adds the routes for the operator's limits of every account to `app`, which only the operator can access. They apply
 * in addition to the owner's limits.
 */
export function addAdminLimitsRoutes(app: FastifyInstance, deps: AdminAccountsDeps & LimitsDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: "Show an account's limits",
    description:
      'The limits that the operator has set for the account, with what was spent. The owner may have set others.',
    params: accountParams,
    response: { 200: oneLimitsSchema },
  };
  app.get<{ Params: AccountParams }>(LIMITS, { schema }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    return { data: await viewLimits(account, 'operator', await deps.limits.get(account, 'operator'), deps) };
  });
  const changed = {
    ...ADMINISTRATION,
    summary: "Change an account's limits",
    description:
      'Changes only the given fields: budgets and rates of all keys of the account together. `budgets` replaces the list. It takes effect at once on this gateway, and within a second on every other gateway.',
    params: accountParams,
    body: limitsBodySchema,
    response: { 200: oneLimitsSchema },
  };
  app.patch<{ Params: AccountParams; Body: LimitsBody }>(
    LIMITS,
    { schema: changed, config: CONFIGURE },
    async ({ params, body }) => {
      const { account } = await findAccount(params.id, deps);
      return changeLimits(account, 'operator', parseLimits(body), deps);
    },
  );
}
