import { GatewayError } from '#errors';
import { DOCUMENTED, MUST_BE } from '#http';
import { withCarried, type Ledger } from '#billing';
import { toUsdNumber } from '#billing/amounts';
import {
  type KeyChanges,
  type KeyRecord,
  GRACE_S_MAX,
  KEYS_PER_ACCOUNT_MAX,
  UNFUNDED_KEYS_MAX,
  type KeyStore,
  type LimitSetter,
  type NewKeyFields,
} from '#auth/keys';
import { type Caller, type MemberStore, neverHadMoney } from '#accounts';
import { LIMIT_RESETS, budgetAt, nameInPattern, type LimitReset } from '#accounts/names';
import { objectOf, titled, dataOf, listOf, type PageRange } from '../route-schemas.ts';
import {
  callRulesProperties,
  callRulesView,
  documentedUsd,
  parseCallRules,
  parseTime,
  parseUsdField,
  refuseLongPatterns,
  type CallRulesBody,
  viewCallRules,
} from './body-fields.ts';
import { NO_USAGE, type FindKeyUsage } from './key-usage.ts';
import { readName } from './label.ts';

/** The validated body of a request that creates or changes a key. */
export interface KeyBody extends CallRulesBody {
  readonly name?: string;
  readonly label?: string;
  readonly limit?: number | null;
  readonly limit_reset?: LimitReset | null;
  readonly limit_soft?: boolean;
  readonly limit_notify?: readonly number[] | null;
  readonly requests_per_minute?: number | null;
  readonly tokens_per_minute?: number | null;
  readonly expires_at?: string | null;
  readonly continue?: boolean | null;
  readonly disabled?: boolean;
}

/** Percentages of a limit. Values above 100 are for soft limits. */
export const notifyProperty = {
  type: ['array', 'null'],
  maxItems: 10,
  uniqueItems: true,
  items: { type: 'integer', minimum: 1, maximum: 1_000 },
} as const;

/** Schema of a rate. `usual` says what null means. */
export const rateProperty = (what: string, usual: string) =>
  ({
    type: ['integer', 'null'],
    minimum: 1,
    maximum: 1_000_000_000,
    description: `The most ${what} in a minute; null is ${usual}.`,
  }) as const;

const LABEL = { type: 'string', minLength: 1, maxLength: 128, [DOCUMENTED]: { pattern: '\\S' } } as const;

const COUNTS_ALL =
  'It counts everything that the key spent in the period, also with another limit or without one. A limit that never resets counts everything that the key ever spent.';

const keyBodyProperties = {
  name: { ...LABEL, description: 'A name for the key.' },
  label: { ...LABEL, description: 'The same as `name`.' },
  limit: {
    type: ['number', 'null'],
    minimum: 0,
    description: 'The most that the key may spend, in USD, in each reset period; null is no limit.',
    [DOCUMENTED]: documentedUsd,
  },
  limit_reset: {
    type: ['string', 'null'],
    enum: [...LIMIT_RESETS, null],
    description: `When the limit resets, at 00:00 UTC; null is never. ${COUNTS_ALL}`,
  },
  limit_soft: { type: 'boolean', description: 'True: the limit refuses no calls and only sends notices.' },
  limit_notify: {
    ...notifyProperty,
    description:
      'Percentages of the limit at which a notice is sent; null sends none. The default for a soft limit is 50, 80 and 100.',
  },
  requests_per_minute: rateProperty('requests', "the gateway's rate, which no key goes beyond"),
  tokens_per_minute: rateProperty('tokens', "the gateway's rate, which no key goes beyond"),
  expires_at: {
    type: ['string', 'null'],
    maxLength: 40,
    description: 'Date and time with time zone (RFC 3339) from which the key is refused; null is never.',
    [DOCUMENTED]: { format: 'date-time' },
  },
  continue: {
    type: ['boolean', 'null'],
    description:
      'Whether a stream of the key that breaks off is gone on with by the next of `models`, if the request does not say it in `continue`; null is as the model says.',
  },
  ...callRulesProperties('the key'),
} as const;

/** The schema of the body that creates a key. A body is needed, so that no key without limits is made by a slip. */
export const newKeyBodySchema = <P extends object>(title: string, example: object, more: P = {} as P) => ({
  title,
  type: 'object',
  additionalProperties: false,
  examples: [example],
  [MUST_BE]: 'a JSON object ({} makes a key without limits)',
  properties: { ...keyBodyProperties, ...more },
});

/** The schema of the body that changes a key. */
export const keyChangesSchema = {
  title: 'KeyChanges',
  type: 'object',
  additionalProperties: false,
  examples: [{ disabled: true }],
  properties: {
    ...keyBodyProperties,
    disabled: { type: 'boolean', description: 'True stops the key, false lets it work again.' },
  },
} as const;

/** Members that clients of other gateways require. This gateway doesn't have these features, so they are constant. */
const FOR_OTHER_CLIENTS = {
  byok_usage: 0,
  byok_usage_daily: 0,
  byok_usage_weekly: 0,
  byok_usage_monthly: 0,
  include_byok_in_limit: false,
  is_free_tier: false,
  is_management_key: false,
  is_provisioning_key: false,
  creator_user_id: null,
  external_user: null,
  organization_id: null,
  workspace_id: '',
  allowed_data_regions: ['global'],
  free_model_daily_requests: { limit: 0, remaining: 0, used: 0 },
} as const;

const notHere = (type: string) => ({
  type,
  description: 'It has no meaning here and exists for clients that need it.',
});
const otherClientsSchema = {
  ...Object.fromEntries(
    Object.entries(FOR_OTHER_CLIENTS).map(([name, value]) => [name, notHere(value === null ? 'null' : typeof value)]),
  ),
  allowed_data_regions: { ...notHere('array'), items: { type: 'string' } },
  free_model_daily_requests: {
    ...notHere('object'),
    properties: { limit: { type: 'integer' }, remaining: { type: 'integer' }, used: { type: 'integer' } },
  },
};

export const limitSetByProperty = {
  type: ['string', 'null'],
  description: '`operator` or `account`: who set the limit; null without a limit, or if it was not recorded.',
} as const;

export const keySchema = titled(
  'ApiKey',
  objectOf(
    {
      hash: {
        type: 'string',
        description:
          'Public identifier of the key: the SHA-256 of its first text. It stays when the key gets another one.',
      },
      name: { type: 'string' },
      label: { type: 'string' },
      member: {
        type: ['string', 'null'],
        description: 'Account of the member whose key it is; null for the account itself.',
      },
      client: {
        type: ['string', 'null'],
        description:
          'The origin of the program that signed in and has this as its limits, or the playground of a member; null for a key that was created. Deleting the key signs the program out.',
      },
      disabled: { type: 'boolean' },
      limit: { type: ['number', 'null'], description: 'USD for each reset period.' },
      limit_remaining: {
        type: ['number', 'null'],
        description: 'USD left in this period; what running calls have locked is counted as spent.',
      },
      limit_reset: { type: ['string', 'null'], enum: [...LIMIT_RESETS, null] },
      limit_soft: { type: 'boolean' },
      limit_notify: { type: ['array', 'null'], items: { type: 'integer' } },
      limit_set_by: limitSetByProperty,
      requests_per_minute: { type: ['integer', 'null'] },
      tokens_per_minute: { type: ['integer', 'null'] },
      usage: { type: 'number', description: 'USD spent in all, whatever the limit counts.' },
      usage_daily: {
        type: 'number',
        description:
          'USD spent by calls that began on this UTC day. For an account with many calls, this and the next two values may be a few seconds old.',
      },
      usage_weekly: {
        type: 'number',
        description: 'USD spent by calls that began in this week, from Monday, 00:00 UTC.',
      },
      usage_monthly: { type: 'number', description: 'USD spent by calls that began in this UTC month.' },
      created_at: { type: 'string' },
      updated_at: { type: 'null', description: 'Not kept.' },
      expires_at: { type: ['string', 'null'] },
      continue: { type: ['boolean', 'null'], description: 'Whether streams that break off are gone on with.' },
      ...callRulesView,
      development: { type: 'boolean', description: 'A key for play money.' },
      ...otherClientsSchema,
    },
    ['updated_at', ...Object.keys(FOR_OTHER_CLIENTS)],
  ),
);

type KeyView = Awaited<ReturnType<typeof viewKey>>;

interface KeyViewDeps {
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'isFunded' | 'spentOf'>;
  readonly usage: FindKeyUsage;
  readonly now: () => number;
}

/** A key in the form of answers, with its spending. */
export async function viewKey(record: KeyRecord, deps: KeyViewDeps) {
  const { id, carried } = budgetAt(record.hash, record, deps.now());
  const [counted, all, lately] = await Promise.all([
    deps.ledger.budget(id),
    deps.ledger.spentOf(record.hash),
    deps.usage(record.account),
  ]);
  const { spent, locked } = withCarried(counted, carried);
  const { daily, weekly, monthly } = lately.get(record.hash) ?? NO_USAGE;
  const remaining = record.limit === null ? null : record.limit - spent - locked;
  return {
    hash: record.hash,
    name: record.label,
    label: record.label,
    member: record.member,
    client: record.client,
    disabled: record.disabled,
    limit: record.limit === null ? null : toUsdNumber(record.limit),
    limit_remaining: remaining === null ? null : toUsdNumber(remaining > 0n ? remaining : 0n),
    limit_reset: record.limitReset,
    limit_soft: record.limitSoft,
    limit_notify: record.limitNotify,
    limit_set_by: record.limitBy,
    requests_per_minute: record.requestsPerMinute,
    tokens_per_minute: record.tokensPerMinute,
    usage: toUsdNumber(all),
    usage_daily: toUsdNumber(daily),
    usage_weekly: toUsdNumber(weekly),
    usage_monthly: toUsdNumber(monthly),
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: null,
    expires_at: record.expiresAt === null ? null : new Date(record.expiresAt).toISOString(),
    continue: record.continues,
    ...viewCallRules(record),
    development: record.development,
    ...FOR_OTHER_CLIENTS,
  };
}

/** Reads the changes of a body. Throws GatewayError `invalid_request` for an invalid amount or time. */
export function parseKeyBody(body: KeyBody, now: number): KeyChanges {
  const changes: { -readonly [Field in keyof KeyChanges]: KeyChanges[Field] } = {};
  const name = body.name ?? body.label;
  const label = name === undefined ? undefined : readName(name, body.name === undefined ? 'label' : 'name');
  if (label === '')
    throw new GatewayError('invalid_request', 'A key needs a name that is not blank', { param: 'name' });
  if (label !== undefined) changes.label = label;
  if (body.disabled !== undefined) changes.disabled = body.disabled;
  if (body.limit !== undefined) changes.limit = body.limit === null ? null : parseUsdField(body.limit, 'limit');
  if (body.limit_reset !== undefined) changes.limitReset = body.limit_reset;
  if (body.limit_soft !== undefined) changes.limitSoft = body.limit_soft;
  const { limit_notify: notify } = body;
  if (notify !== undefined) changes.limitNotify = notify?.length === 0 ? null : notify;
  if (body.requests_per_minute !== undefined) changes.requestsPerMinute = body.requests_per_minute;
  if (body.tokens_per_minute !== undefined) changes.tokensPerMinute = body.tokens_per_minute;
  if (body.expires_at !== undefined)
    changes.expiresAt = body.expires_at === null ? null : parseExpiry(body.expires_at, now);
  if (body.continue !== undefined) changes.continues = body.continue;
  return { ...changes, ...parseCallRules(body) };
}

function parseExpiry(text: string, now: number): number {
  const at = parseTime(text);
  if (Number.isNaN(at))
    throw new GatewayError(
      'invalid_request',
      'expires_at must be a date and time with time zone, such as 2030-01-31T12:00:00Z',
      { param: 'expires_at' },
    );
  if (at <= now)
    throw new GatewayError('invalid_request', 'expires_at is in the past. To stop a key now, disable or delete it', {
      param: 'expires_at',
    });
  return at;
}

/* Functions for the keys of an account, with the schemas of their answers. The operator and the account itself use
   them. */

export interface KeysDeps extends KeyViewDeps {
  /** Whether a service of this name is offered. A key can be limited to services and tools. */
  readonly offers: (service: string) => boolean;
  readonly keys: KeyStore;
  readonly members: Pick<MemberStore, 'find'>;
}

const hash = { type: 'string', description: 'The hash of the key.' } as const;

/** Schema of the path parameters of a key. `params` are the parameters of its account. */
export const keyParams = (params: Readonly<Record<string, object>> = {}) => objectOf({ ...params, hash });

export const oneKeySchema = dataOf(keySchema);
export const keyListSchema = listOf(keySchema);
export const newKeySchema = titled(
  'NewKey',
  objectOf(
    {
      key: { type: 'string', description: 'The key itself: shown in this answer and never again.' },
      data: keySchema,
      warnings: {
        type: 'array',
        items: { type: 'string' },
        description: 'Parts of the request that may be mistakes; left out without any.',
      },
    },
    ['warnings'],
  ),
);
export const deletedKeySchema = titled(
  'DeletedKey',
  objectOf({
    deleted: { type: 'boolean' },
    data: objectOf({ hash: { type: 'string' }, deleted: { type: 'boolean' } }),
  }),
);

export async function listKeys(
  deps: Omit<KeysDeps, 'offers' | 'members'>,
  account: string,
  page: PageRange,
): Promise<{ readonly data: readonly KeyView[] }> {
  const records = await deps.keys.list(account, page);
  return { data: await Promise.all(records.map((record) => viewKey(record, deps))) };
}

/**
 * Creates a key. `member` is the member that owns it, or null for a key of the account itself. `setter` is who creates
 * it. Throws GatewayError `invalid_request`, `unprocessable` if the account has too many keys, `permission_denied` if
 * the member was removed or is a viewer, and `unauthorized` if the credential of `maker` has ended meanwhile.
 */
export async function createKey(
  { keys, offers, members, ...deps }: KeysDeps,
  account: string,
  kind: NewKeyFields['kind'],
  body: KeyBody,
  {
    member,
    client = null,
    setter: limitBy,
    maker,
  }: {
    readonly member: string | null;
    readonly client?: string | null;
    readonly setter: LimitSetter;
    readonly maker?: Caller | undefined;
  },
): Promise<{ readonly key: string; readonly data: KeyView; readonly warnings?: readonly string[] }> {
  const fields = parseKeyBody(body, deps.now());
  const isSmall = limitBy === 'account' && (await neverHadMoney(deps.ledger, account));
  if (isSmall) await refuseLongPatterns(deps.ledger, account, fields);
  const most = isSmall ? UNFUNDED_KEYS_MAX : KEYS_PER_ACCOUNT_MAX;
  const created = await keys.create({ label: 'key', ...fields, account, kind, member, client, limitBy, maker, most });
  if (!created) throw await whyNoKey({ keys, members }, account, member, most);
  const missing = (created.record.allowedServices ?? []).filter((pattern) => namesNothing(pattern, offers));
  const warnings = missing.map((pattern) => `No service has the name ${pattern} at the moment. Check the name`);
  return { key: created.text, data: await viewKey(created.record, deps), ...(warnings.length > 0 ? { warnings } : {}) };
}

/** Whether a pattern names one service, or a tool of one, that nobody offers. */
function namesNothing(pattern: string, offers: KeysDeps['offers']): boolean {
  const name = nameInPattern(pattern);
  if (name.endsWith('*') || offers(name)) return false;
  for (let slash = name.indexOf('/'); slash !== -1; slash = name.indexOf('/', slash + 1))
    if (offers(name.slice(0, slash))) return false;
  return true;
}

async function whyNoKey(
  { keys, members }: Pick<KeysDeps, 'keys' | 'members'>,
  account: string,
  member: string | null,
  most: number,
): Promise<GatewayError> {
  const role = member === null ? 'owner' : (await members.find(account, member))?.role;
  if (role === undefined) return new GatewayError('permission_denied', 'You are no longer a member of this account');
  if (role === 'viewer')
    return new GatewayError('permission_denied', 'This needs the role member of the account, but your role is viewer');
  const last = await keys.list(account, { offset: most - 1, limit: 1 });
  if (last.length > 0)
    return new GatewayError(
      'unprocessable',
      most === UNFUNDED_KEYS_MAX
        ? `An account that never had 0.10 USD has at most ${most} keys. Delete unused keys, or add money first`
        : 'This account has too many keys. Delete unused keys',
    );
  return new GatewayError('unauthorized', 'Your session or key has just ended: sign in again, or use another key');
}

/** Changes a key. Throws GatewayError `not_found`. */
export async function changeKey(
  { keys, ...deps }: Omit<KeysDeps, 'offers' | 'members'>,
  account: string,
  hash: string,
  changes: KeyChanges,
  setter: LimitSetter,
): Promise<{ readonly data: KeyView }> {
  if (setter === 'account') await refuseLongPatterns(deps.ledger, account, changes);
  const record = await keys.update(account, hash, changes, setter);
  if (!record) throw keyNotFound();
  return { data: await viewKey(record, deps) };
}

export interface RotationBody {
  readonly grace_seconds?: number;
}

export const rotationSchema = {
  title: 'KeyRotation',
  type: 'object',
  additionalProperties: false,
  examples: [{ grace_seconds: 3600 }],
  [MUST_BE]: 'a JSON object ({} refuses the text before at once)',
  properties: {
    grace_seconds: {
      type: 'integer',
      minimum: 0,
      maximum: GRACE_S_MAX,
      description: 'How long the text before still works, at most 7 days. Default 0: it is refused at once.',
    },
  },
} as const;

/** Gives a key another text. Throws GatewayError `not_found`, `unprocessable` for one of a program. */
export async function rotateKey(
  { keys, ...deps }: Omit<KeysDeps, 'offers' | 'members'>,
  account: string,
  hash: string,
  { grace_seconds: graceS = 0 }: RotationBody,
): Promise<{ readonly key: string; readonly data: KeyView }> {
  const record = await keys.find(hash);
  if (record?.account !== account) throw keyNotFound();
  if (record.client !== null)
    throw new GatewayError(
      'unprocessable',
      'A program has this key by signing in, and nobody has its text: delete the key, and let the program sign in again',
      { param: 'hash' },
    );
  const rotated = await keys.rotate(account, hash, graceS * 1_000);
  if (!rotated) throw keyNotFound();
  return { key: rotated.text, data: await viewKey(rotated.record, deps) };
}

/** Throws GatewayError `not_found`. */
export async function deleteKey(keys: Pick<KeyStore, 'delete'>, account: string, hash: string) {
  if (!(await keys.delete(account, hash))) throw keyNotFound();
  return { deleted: true, data: { hash, deleted: true } };
}

/** The same error for a key that doesn't exist and for a key of another account. */
export function keyNotFound(): GatewayError {
  return new GatewayError('not_found', 'Key not found', { param: 'hash' });
}
