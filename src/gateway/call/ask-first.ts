import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '#errors';
import { Shares } from '#wire';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import { type Approval, type ApprovalStore, type Caller, type EndUsers, mayAsk, tagsOfCall } from '#accounts';
import type { Health } from '#catalog';
import type { Call, CallRequest } from './call.ts';
import { isQuoted, type Quotes } from './quotes.ts';
import { releaseProbes } from './routing/router.ts';

/*
 * Calls that a person accepts before any money is locked. A key may have a price for one call, `askAbove`: a call that
 * may cost more becomes a binding quote that waits. Once it is accepted, the same request of the same key runs once, at
 * that price.
 */

export interface AskFirst {
  readonly approvals: ApprovalStore;
  /** The page on which a person decides; null if no address of the gateway is known. */
  readonly pageOf: (id: string) => string | null;
}

/** How long a person has to accept, and the client to send its request again. */
const APPROVAL_MS = 15 * 60_000;

interface AskFirstDeps extends AskFirst {
  readonly quotes: Quotes;
  readonly health: Health;
  readonly endUsers: EndUsers;
  readonly now: () => number;
}

type Prepare = (request: CallRequest, id: string) => Call | Promise<Call>;

/**
 * Prepares a call of a key with `askAbove`. Rejects with GatewayError `approval_required` if it may cost more and
 * nobody has accepted it yet, and with `approval_refused` if somebody has refused it.
 */
export async function prepareAsking(deps: AskFirstDeps, prepare: Prepare, incoming: CallRequest, id: string) {
  const request = { ...incoming, caller: withTagsInContent(incoming, deps.endUsers) };
  const approval = await decided(deps, request.caller);
  if (approval !== null && approval.expiresAt > deps.now()) {
    if (approval.state === 'refused') throw refused(approval);
    if (approval.state === 'waiting') throw needed(deps, approval);
    const accepted = await atApproval(prepare, request, id, approval);
    if (accepted !== null) return accepted;
  }
  const call = await prepare(request, id);
  const cheap = withinPrice(deps, call);
  return cheap ?? ask(deps, call, approval?.id ?? null);
}

/** The caller whose content has the tags too: they say which budget is charged, and may be in headers alone. */
function withTagsInContent(request: CallRequest, endUsers: EndUsers): Caller {
  const { caller } = request;
  const tags = tagsOfCall(caller, request, endUsers);
  if (tags === undefined || caller.content === undefined) return caller;
  const { content } = caller;
  const sorted = JSON.stringify(Object.entries(tags).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  return { ...caller, content: { ...content, digest: hash('sha256', `${content.digest}\n${sorted}`) } };
}

const WAITING = new Shares(256);
const LOOK_MS = 1_000;

/** The approval of a request, once it is decided or the request waits no longer; null for none. */
async function decided({ approvals, now }: AskFirstDeps, { account, key, content }: Caller): Promise<Approval | null> {
  const { digest, waitMs } = content!;
  const findApproval = () => approvals.find(key!.hash, digest);
  const waits = (approval: Approval | null) => approval?.state === 'waiting' && approval.expiresAt > now();
  let approval = await findApproval();
  if (waitMs === 0 || !waits(approval) || !WAITING.mayTake(account)) return approval;
  WAITING.take(account);
  try {
    for (let waited = 0; waited < waitMs && waits(approval); waited += LOOK_MS) {
      await sleep(LOOK_MS);
      approval = await findApproval();
    }
    return approval;
  } finally {
    WAITING.leave(account);
  }
}

/** The call at the accepted price; null if another call has used it, or if it is over. */
async function atApproval(prepare: Prepare, request: CallRequest, id: string, { id: approval, quote }: Approval) {
  try {
    return { ...(await prepare({ ...request, quote: { id: quote, implied: false } }, id)), approval };
  } catch (error) {
    if (error instanceof GatewayError && OVER.has(error.code)) return null;
    throw error;
  }
}

const OVER: ReadonlySet<string> = new Set(['quote_used', 'quote_expired', 'quote_mismatch', 'not_found']);

/** The call at its offers that need nobody; null if the first choice needs a person. */
function withinPrice({ health }: Pick<AskFirstDeps, 'health'>, call: Call): Call | null {
  const most = call.caller.key!.askAbove!;
  const candidates = call.candidates.filter(({ estimate }) => estimate + call.lendable <= most);
  if (candidates[0] !== call.candidates[0]) return null;
  if (candidates.length === call.candidates.length) return call;
  releaseProbes(health, { ...call, candidates: call.candidates.filter((one) => !candidates.includes(one)) });
  return { ...call, candidates };
}

async function ask(deps: AskFirstDeps, call: Call, instead: string | null): Promise<never> {
  const { approvals, quotes, health, now } = deps;
  releaseProbes(health, call);
  if (call.quote !== undefined) await quotes.free(call.quote, call.id);
  const { caller, primitive, service, operation } = call;
  const first = call.candidates[0]!;
  const amount = first.estimate + call.lendable;
  const alike = call.candidates.filter(
    ({ estimate, offer, ownKey }) => estimate === first.estimate && ownKey === undefined && isQuoted(offer),
  );
  if (alike.length === 0) throw unasked(caller, amount, 'its price cannot be fixed beforehand');
  const { id: quote, validUntil: expiresAt } = await quotes.give(call, alike, APPROVAL_MS);
  const { hash: key, label } = caller.key!;
  const { digest, preview } = caller.content!;
  const question = {
    account: caller.account,
    key,
    digest,
    primitive,
    service,
    operation,
    quote,
    amount,
    preview,
    expiresAt,
  };
  const event = (id: string) => ({
    event: 'approval.waiting',
    time: new Date(now()).toISOString(),
    account: caller.account,
    approval: viewOf(deps, { ...question, id }),
    key: { hash: key, name: label },
  });
  const createdApproval = (await approvals.ask(question, instead, event)) ?? (await approvals.find(key, digest));
  if (createdApproval === null)
    throw new GatewayError(
      'rate_limit_exceeded',
      'Too many calls of this key, or of this account, wait to be accepted. Decide some',
      {
        retryAfterS: 60,
      },
    );
  throw createdApproval.state === 'refused' ? refused(createdApproval) : needed(deps, createdApproval);
}

type Shown = Pick<Approval, 'id' | 'amount' | 'expiresAt' | 'service' | 'operation'>;

/** An approval in answers to the client that asks. */
const viewOf = ({ pageOf }: Pick<AskFirst, 'pageOf'>, { id, amount, expiresAt, service, operation }: Shown) => ({
  id,
  url: pageOf(id),
  expires_at: new Date(expiresAt).toISOString(),
  highest_cost_usd: formatUsd(amount),
  service,
  ...(operation === null ? {} : { tool: operation }),
});

function needed(deps: Pick<AskFirst, 'pageOf'>, shownApproval: Shown): GatewayError {
  const approval = viewOf(deps, shownApproval);
  const where = approval.url === null ? 'on the page "Approvals" of the dashboard' : `at ${approval.url}`;
  return new GatewayError(
    'approval_required',
    `This call may cost ${approval.highest_cost_usd} USDC, so a person has to accept it first: an admin or owner of the account, ${where}, until ${approval.expires_at}. Then send the same request again, also if your client has given up meanwhile (many do after 3 or 4 minutes), and it runs once`,
    { body: { approval } },
  );
}

const refused = ({ id, expiresAt }: Approval): GatewayError =>
  new GatewayError(
    'approval_refused',
    `A person has refused this call. The same request can be asked for again after ${new Date(expiresAt).toISOString()}`,
    { body: { approval: { id, expires_at: new Date(expiresAt).toISOString() } } },
  );

/**
 * The error of a call, or of several under one lock, that may cost more than the caller's `askAbove` where nobody can
 * be asked. `why` completes: it cannot wait for a person, because.
 */
export const unasked = ({ key }: Caller, amount: MicroUsd, why: string): GatewayError =>
  new GatewayError(
    'permission_denied',
    `This may cost ${formatUsd(amount)} USDC, and above ${formatUsd(key!.askAbove!)} USDC a person has to accept what this key calls. It cannot wait for one, because ${why}: lower its cost, or use another key`,
  );

/** Whether a person has to accept that this much is locked for a caller. */
export const asksFor = (caller: Caller, amount: MicroUsd): boolean => mayAsk(caller) && amount > caller.key!.askAbove!;
