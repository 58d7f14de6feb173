import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { formatUsd } from '#billing/amounts';
import { type ApprovalStore, type ApprovalUse, type Caller, type LimitsStore, reaches } from '#accounts';
import type { Pipeline } from '#call';
import {
  type CallerOf,
  type KeyStore,
  type Nonces,
  requireAdmission,
  requireFreshSignature,
  requireFullRights,
} from '#auth';
import { dataOf, listOf, objectOf, titled } from '../route-schemas.ts';

interface ApprovalsDeps {
  readonly admit: Pipeline['admit'];
  readonly approvals: ApprovalStore;
  readonly keys: Pick<KeyStore, 'find'>;
  readonly limits: Pick<LimitsStore, 'get'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly now: () => number;
}

interface Params {
  readonly id: string;
}
interface Decision {
  readonly decision: 'accept' | 'refuse';
}

const tags = ['Account'];
const LISTED_MAX = 100;
const STATES = ['waiting', 'accepted', 'refused', 'used', 'expired'] as const;

/** The calls that wait for a person, and the decisions about them. */
export function approvalsRoutes({ admit, ...deps }: ApprovalsDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, admit);
    const callerOf: CallerOf = (request) => admissionOf(request).caller;
    listApprovals(app, deps, callerOf);
    decideApproval(app, deps, callerOf);
  };
}

const approvalSchema = titled(
  'Approval',
  objectOf({
    id: { type: 'string' },
    state: {
      type: 'string',
      enum: STATES,
      description: '`used`: a call runs or ran with it. `expired`: nobody decided, or the request was not sent again.',
    },
    primitive: { type: 'string' },
    service: { type: 'string' },
    tool: { type: ['string', 'null'] },
    highest_cost_usd: { type: 'string', description: 'The most that the call can cost, at a price that is fixed.' },
    digest: { type: 'string', description: 'SHA-256 of the request: a repeat has the same.' },
    preview: {
      type: ['string', 'null'],
      description:
        'The first 2,000 characters of the request, with unprintable ones as `\\u{…}`, and how much more there is. null for members who cannot decide, unless their own key asks.',
    },
    key: objectOf({
      hash: { type: 'string', description: 'The API key that asks.' },
      name: { type: ['string', 'null'], description: 'null if the key was deleted.' },
      client: {
        type: ['string', 'null'],
        description:
          'The origin of the program that signed in, of which the name is its own word; null for other keys.',
      },
      member: { type: ['string', 'null'], description: 'The account of the member whose key it is.' },
    }),
    created_at: { type: 'string' },
    expires_at: { type: 'string', description: 'Until then it can be accepted, and the request be sent again.' },
    decided_at: { type: ['string', 'null'] },
    decided_by: { type: ['string', 'null'], description: 'The account that has decided.' },
    call: { type: ['string', 'null'], description: 'Id of the call that has used it.' },
  }),
);

const timeOf = (at: number | null) => (at === null ? null : new Date(at).toISOString());

function stateOf({ call, state, expiresAt }: ApprovalUse, now: number): (typeof STATES)[number] {
  if (call !== null) return 'used';
  return expiresAt <= now ? (state === 'refused' ? 'refused' : 'expired') : state;
}

async function viewApproval(
  approval: ApprovalUse,
  { member }: Caller,
  { keys, now }: Pick<ApprovalsDeps, 'keys' | 'now'>,
) {
  const key = await keys.find(approval.key);
  const maySee = member === undefined || reaches(member.role, 'admin') || key?.member === member.account;
  return {
    id: approval.id,
    state: stateOf(approval, now()),
    primitive: approval.primitive,
    service: approval.service,
    tool: approval.operation,
    highest_cost_usd: formatUsd(approval.amount),
    digest: approval.digest,
    preview: maySee ? approval.preview : null,
    key: {
      hash: approval.key,
      name: key?.label ?? null,
      client: key?.client ?? null,
      member: key?.member ?? null,
    },
    created_at: timeOf(approval.createdAt),
    expires_at: timeOf(approval.expiresAt),
    decided_at: timeOf(approval.decidedAt),
    decided_by: approval.decidedBy,
    call: approval.call,
  };
}

function listApprovals(app: FastifyInstance, deps: Omit<ApprovalsDeps, 'admit'>, callerOf: CallerOf): void {
  const schema = {
    summary: 'List calls that a person accepts',
    description:
      'Calls that may cost more than `ask_above` of their key or its member: those that wait, and those that were decided in the last day, the newest first. A restricted key sees its own.',
    tags,
    response: { 200: listOf(approvalSchema) },
  };
  app.get('/approvals', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const caller = callerOf(request);
    const { account, key } = caller;
    const listed = await deps.approvals.list(account, key?.restricted ? key.hash : null, LISTED_MAX);
    return { data: await Promise.all(listed.map((one) => viewApproval(one, caller, deps))) };
  });
}

function decideApproval(app: FastifyInstance, deps: Omit<ApprovalsDeps, 'admit'>, callerOf: CallerOf): void {
  const schema = {
    summary: 'Accept or refuse a call',
    description:
      'For an admin or owner of the account. An admin who has `ask_above` in the organisation cannot accept the calls of their own keys. Once it is accepted, the same request of the same key runs once, at the price that is fixed. A wallet signs in for this with a nonce of `/auth/nonce`.',
    tags,
    params: objectOf({ id: { type: 'string' } }),
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['decision'],
      examples: [{ decision: 'accept' }],
      properties: { decision: { type: 'string', enum: ['accept', 'refuse'] } },
    },
    response: { 200: dataOf(approvalSchema) },
  };
  app.post<{ Params: Params; Body: Decision }>(
    '/approvals/:id',
    { config: { actsAs: 'admin' }, schema },
    async (request) => {
      const caller = callerOf(request);
      await requireFullRights(deps.keys, caller, {
        what: 'decide about calls',
        instead: 'ask an admin of the account',
      });
      const { id } = request.params;
      const waiting = await deps.approvals.get(caller.account, id);
      if (waiting === null) throw notFound();
      if (request.body.decision === 'accept') await refuseOwn(deps, caller, waiting);
      await requireFreshSignature(caller, deps.nonces);
      const decider = caller.member?.account ?? caller.account;
      const state = request.body.decision === 'accept' ? 'accepted' : 'refused';
      const isDecided = await deps.approvals.decide(caller.account, id, state, decider);
      const approval = await deps.approvals.get(caller.account, id);
      if (approval === null) throw notFound();
      if (!isDecided)
        throw new GatewayError(
          'unprocessable',
          `This call does not wait any more: it is ${stateOf(approval, deps.now())}`,
          {
            param: 'id',
          },
        );
      return { data: await viewApproval(approval, caller, deps) };
    },
  );
}

/**
 * Throws if a member accepts a call of their own key, although the organisation has said above which price another
 * person has to accept it. An owner may: the money is theirs, and nobody else could lift the price for a lone owner.
 */
async function refuseOwn(
  { keys, limits }: Pick<ApprovalsDeps, 'keys' | 'limits'>,
  { account, member }: Caller,
  approval: ApprovalUse,
): Promise<void> {
  if (member === undefined || member.role === 'owner') return;
  if ((await keys.find(approval.key))?.member !== member.account) return;
  const { askAbove } = await limits.get(account, member.account);
  if (askAbove === null) return;
  throw new GatewayError(
    'permission_denied',
    `You cannot accept your own calls, because the organisation asks another person above ${formatUsd(askAbove)} USD. Ask an owner or another admin`,
  );
}

const notFound = () => new GatewayError('not_found', 'There is no such call that waits', { param: 'id' });
