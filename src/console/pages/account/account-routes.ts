import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import {
  escrowOf,
  type AccountTotals,
  type FoundLocks,
  type Ledger,
  type LockRecord,
  type LocksQuery,
  type Refunds,
  withCarried,
} from '#billing';
import { formatUsd, toUsdNumber } from '#billing/amounts';
import type { Pipeline } from '#call';
import {
  isRestricted,
  requireAdmission,
  refuseRestricted,
  type KeyStore,
  type AdmissionOf,
  type CallerOf,
} from '#auth';
import { ownerOf, type Tasks, waitsForClient } from '#tasks';
import { partyOf } from '#wire/places';
import type { Caller } from '#accounts';
import { callerCaip10 } from '#accounts/names';
import { dataOf, objectOf, fundPageSchema, pageOf, type FundPage } from '../route-schemas.ts';
import { formatSchema, jsonOrCsv, sendCsv } from '../csv.ts';
import { MOVEMENTS, type MovementsDeps, movementSchema, readMovements } from './movements.ts';
import { type GenerationDeps, generationSchema, viewWhole } from './call-tree.ts';
import { callSchema, viewCall, type CallView } from './generation-view.ts';
import {
  generationsCsv,
  findGenerations,
  generationsQuerySchema,
  type GenerationsQuery,
  ownKey,
} from './generations.ts';
import { dayOf, type FindArchived, refuseArchived } from './archived-calls.ts';
import { addKeysRoutes, type OwnKeysDeps } from './key-routes.ts';
import { addOwnRefusalsRoute, type RefusalsDeps } from './refusals-routes.ts';

interface AccountDeps extends OwnKeysDeps, MovementsDeps, RefusalsDeps, Pick<GenerationDeps, 'prices'> {
  readonly admit: Pipeline['admit'];
  readonly keys: OwnKeysDeps['keys'];
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'children' | 'find' | 'isFunded' | 'spentOf'>;
  readonly refunds: Pick<Refunds, 'find' | 'amounts'>;
  readonly findLocks: (query: LocksQuery) => Promise<FoundLocks>;
  readonly findArchived: FindArchived;
  /** The end of the newest archive in epoch milliseconds; 0 without one. */
  readonly archivedUntil: () => Promise<number>;
  readonly totals: (account: string) => Promise<AccountTotals>;
  readonly tasks: Pick<Tasks, 'liveStatesOf'>;
  /** Returns the signed receipt of a call, or null if it has none. */
  readonly receipt: (record: LockRecord) => string | null;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
}

const tags = ['Account'];

/** The routes of a caller's own account: keys, balance, calls. Register it under `/api/v1`. */
export function accountRoutes(deps: AccountDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    const callerOf: CallerOf = (request) => admissionOf(request).caller;
    addKeysRoutes(app, deps, admissionOf);
    showBalance(app, deps, callerOf);
    showCredits(app, deps, callerOf);
    addMovementsRoute(app, deps, admissionOf);
    showGeneration(app, deps, callerOf);
    listGenerations(app, deps, callerOf);
    addOwnRefusalsRoute(app, deps, callerOf);
  };
}

function showBalance(app: FastifyInstance, deps: AccountDeps, callerOf: CallerOf): void {
  const answer = objectOf({
    caip_account_id: { type: 'string', description: 'CAIP-10.' },
    balance_micro_usdc: { type: 'integer' },
    balance_usd: { type: 'string', description: 'Decimal.' },
    locked_micro_usdc: { type: 'integer', description: 'Locked by running calls; not part of the balance.' },
  });
  const schema = {
    summary: 'Show your balance',
    description:
      'What is available in your escrow; 0 for an account that was never funded. It does not include the locks of running calls. A restricted key sees what it may spend itself: the least of that and of what is left in its budgets.',
    tags,
    response: { 200: answer },
  };
  app.get('/session/balance', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const caller = callerOf(request);
    const { available, locked } = await spendable(deps, caller);
    return {
      caip_account_id: callerCaip10(caller, deps.networks),
      balance_micro_usdc: Number(available),
      balance_usd: formatUsd(available),
      locked_micro_usdc: Number(locked),
    };
  });
}

/**
 * The money that the caller may spend now, and that its running calls have locked. `spent`: in all, by a restricted
 * key; null for a caller that sees the whole account.
 */
async function spendable({ ledger, keys }: AccountDeps, { account, key, budgets = [] }: Caller) {
  const { available = 0n, locked = 0n } = (await ledger.balance(escrowOf(account))) ?? {};
  if (key === null || !(await isRestricted(keys, key))) return { available, locked, spent: null };
  const counted = await Promise.all(
    budgets.map(async ({ id, scope, limit, carried }) => ({
      scope,
      limit,
      ...withCarried(await ledger.budget(id), carried),
    })),
  );
  const least = counted.reduce((most, { limit, spent, locked: busy }) => {
    const rest = limit - spent - busy;
    return rest < most ? rest : most;
  }, available);
  return {
    available: least > 0n ? least : 0n,
    locked: counted.find(({ scope }) => scope === 'key')?.locked ?? 0n,
    spent: await ledger.spentOf(key.hash),
  };
}

function showCredits(app: FastifyInstance, deps: AccountDeps, callerOf: CallerOf): void {
  const answer = objectOf({
    total_credits: { type: 'number', description: 'Deposits minus withdrawals.' },
    total_usage: { type: 'number', description: 'Charged for calls.' },
  });
  const schema = {
    summary: 'Show your credits',
    description:
      'All-time figures of your account in USD. Their difference is what you have left, including the locks of running calls. A restricted key sees its own usage, and as the difference what it may spend itself.',
    tags,
    response: { 200: dataOf(answer) },
  };
  app.get('/credits', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const caller = callerOf(request);
    const { available, locked, spent } = await spendable(deps, caller);
    if (spent !== null)
      return { data: { total_credits: toUsdNumber(spent + locked + available), total_usage: toUsdNumber(spent) } };
    const { credits, usage } = await deps.totals(caller.account);
    return { data: { total_credits: toUsdNumber(credits), total_usage: toUsdNumber(usage) } };
  });
}

function showGeneration(app: FastifyInstance, deps: AccountDeps, callerOf: CallerOf): void {
  const { ledger, networks } = deps;
  const id = { type: 'string', minLength: 1, maxLength: 128, description: 'Id of the call.' };
  const schema = {
    summary: 'Show one call',
    description:
      'What a call of your account did and cost, with every movement of its money and all calls that were made under it; a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only its own calls. The id is in the reply of the call.',
    tags,
    querystring: { ...objectOf({ id }), additionalProperties: true },
    response: { 200: dataOf(generationSchema) },
  };
  app.get<{ Querystring: { readonly id: string } }>(
    '/generation',
    { config: { actsAs: 'viewer' }, schema },
    async (request) => {
      const { account, key } = callerOf(request);
      const record = await ledger.find(request.query.id);
      const own =
        record?.account === account &&
        (viewCall(record, networks).api_key === key?.hash || !(await isRestricted(deps.keys, key)));
      // The same answer for a call that doesn't exist and for a call of another account, because ids are in sequence
      // and can be guessed.
      if (!own) {
        // A restricted key sees only its own calls, and an archive is not searched for those.
        if (record === null && !(await isRestricted(deps.keys, key)))
          refuseArchived(await deps.findArchived(request.query.id, account));
        throw new GatewayError('not_found', 'Generation not found', { param: 'id' });
      }
      const tree = await viewWhole(record, deps, deps.receipt);
      const [data] = await withWaiting([tree], account, deps.tasks);
      return { data };
    },
  );
}

function listGenerations(app: FastifyInstance, deps: AccountDeps, callerOf: CallerOf): void {
  const answer = objectOf({
    data: { type: 'array', items: callSchema },
    next_cursor: { type: ['string', 'null'], description: '`cursor` of the next page; null at the end.' },
    archived_before: {
      type: ['string', 'null'],
      description: 'Calls before this day are archived and not in the list; null without archives.',
    },
  });
  const schema = {
    summary: 'List your calls',
    operationId: 'listGenerations',
    description:
      'Calls of your account, the newest first; a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only its own calls. ' +
      'A page can have fewer calls than `limit`, or none, before the end of the list. Continue with `next_cursor` until it is null. With `format=csv` the answer is one file with all calls, and the header `x-tollgate-archived-before` names the day before which calls are archived.',
    tags,
    querystring: {
      ...generationsQuerySchema,
      properties: { ...generationsQuerySchema.properties, format: formatSchema },
    },
    response: { 200: jsonOrCsv('A page of calls; with `format=csv` a file of all.', answer) },
  };
  const archivedBefore = async () => {
    const until = await deps.archivedUntil();
    return until === 0 ? null : dayOf(until);
  };
  app.get<{ Querystring: ListQuery }>(
    '/generations',
    { config: { actsAs: 'viewer' }, schema },
    async (request, reply) => {
      const caller = callerOf(request);
      const { account } = caller;
      const key = await ownKey(deps.keys, caller, request.query.key, 'key');
      const query = key === undefined ? request.query : { ...request.query, key };
      const view = (record: LockRecord) => viewCall(record, deps.networks);
      if (query.format === 'json') {
        const page = await findGenerations(deps, view, account, query);
        return {
          ...page,
          data: await withWaiting(page.data, account, deps.tasks),
          archived_before: await archivedBefore(),
        };
      }
      refusePages(request.url);
      const day = await archivedBefore();
      if (day !== null) reply.header('x-tollgate-archived-before', day);
      const lines = await generationsCsv(deps, view, account, query);
      return sendCsv(request, reply, { party: partyOf(ownerOf(caller)), name: 'calls.csv', lines });
    },
  );
}

type ListQuery = GenerationsQuery & { readonly format: 'json' | 'csv' };

/** A CSV file always contains all calls. Throws GatewayError `invalid_request` if the query asks for a page. */
function refusePages(url: string): void {
  const query = new URLSearchParams(url.split('?', 2)[1]);
  for (const param of ['cursor', 'limit'])
    if (query.has(param))
      throw new GatewayError(
        'invalid_request',
        `${param} works only with JSON, because a CSV file always contains all calls`,
        {
          param,
        },
      );
}

function addMovementsRoute(
  app: FastifyInstance,
  { keys, ...deps }: MovementsDeps & { readonly keys: Pick<KeyStore, 'find'> },
  admissionOf: AdmissionOf,
): void {
  const schema = {
    summary: 'List the movements of your money',
    description: MOVEMENTS,
    tags: ['Account'],
    querystring: fundPageSchema,
    response: { 200: pageOf(movementSchema) },
  };
  app.get<{ Querystring: FundPage }>('/movements', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const { account, key } = admissionOf(request).caller;
    await refuseRestricted(keys, key, 'see the movements of the account');
    return readMovements(deps, account, request.query);
  });
}

/** Adds to each call whether it waits for its client: it is held, and its task asks for input. */
async function withWaiting<View extends Pick<CallView, 'id' | 'state'>>(
  calls: readonly View[],
  account: string,
  tasks: Pick<Tasks, 'liveStatesOf'>,
): Promise<readonly (View & { readonly waiting: boolean })[]> {
  const held = calls.filter(({ state }) => state === 'held').map(({ id }) => id);
  const states = await tasks.liveStatesOf(held, account);
  return calls.map((call) => ({ ...call, waiting: waitsForClient(states.get(call.id) ?? '') }));
}
