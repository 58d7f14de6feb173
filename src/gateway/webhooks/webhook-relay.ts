import { retryAfterOf, Shares } from '#wire';
import { randomUUID, createHmac } from 'node:crypto';
import { createDueWorker, loadStatements, type Database, type DueWorker, type Row } from '#store';
import type { SealedTexts } from '#security';
import type { Primitive } from '#config';
import { OutboundFailure, type GuardedFetch } from '#network';
import { type LostDelivery, openReceiver, sealOf } from './webhook.ts';

const SQL = loadStatements(import.meta.url, './sql/webhooks.sql', [
  'dueWebhooks',
  'claimWebhook',
  'nextDelivery',
  'endDelivery',
  'endWebhook',
  'keepClaim',
  'releaseWebhook',
  'restWebhook',
]);

/**
 * Concurrency limits of one gateway. A receiver that hangs occupies a slot for `timeoutMs`. Neither a receiver nor an
 * account can occupy all slots.
 */
export interface RelayLimits {
  readonly inFlightMax: number;
  readonly perAccountMax: number;
  readonly perReceiverMax: number;
  /** Timeout of one attempt. */
  readonly timeoutMs: number;
  /**
   * The lease of a claimed webhook. If a gateway does not renew it, another one takes over. Must be longer than an
   * attempt.
   */
  readonly leaseMs: number;
}

const RELAY_LIMITS: RelayLimits = {
  inFlightMax: 256,
  perAccountMax: 8,
  perReceiverMax: 32,
  timeoutMs: 10_000,
  leaseMs: 60_000,
};

/** The most due webhooks that are read in one turn. */
const CANDIDATES_MAX = 1_000;

interface WebhookRelayOptions {
  readonly fetch: GuardedFetch;
  readonly texts: SealedTexts;
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly now: () => number;
  readonly random: () => number;
  /** Milliseconds between two polls for due webhooks; null: only `wake` and `run` poll. */
  readonly pollMs: number | null;
  readonly limits?: Partial<RelayLimits>;
  readonly onLost: (lost: LostDelivery) => void;
  /** Called if the database could not be reached. The work is tried again. */
  readonly onError: (error: unknown) => void;
}

/**
 * Sends queued deliveries. Any number of gateways may do so on one database. Only one gateway at a time works on a
 * webhook, which keeps the order of its deliveries. `close` aborts running requests and makes their webhooks due at
 * once.
 */
export function createWebhookRelay({
  database,
  fetch,
  texts,
  now,
  random,
  onLost,
  onError,
  ...options
}: WebhookRelayOptions): Pick<DueWorker, 'wake' | 'run' | 'close'> {
  const limits = { ...RELAY_LIMITS, ...options.limits };
  const ofAccounts = new Shares(limits.inFlightMax, limits.perAccountMax);
  const ofReceivers = new Shares(limits.inFlightMax, limits.perReceiverMax);
  /** True if due webhooks had to wait for a free slot. */
  let waiting = false;

  const worker = createDueWorker({ turn: startDue, pauseMs: options.pollMs, onError });
  const { closed } = worker;

  async function startDue(): Promise<void> {
    const due = await database.query(SQL.dueWebhooks, [now(), limits.perAccountMax, CANDIDATES_MAX]);
    // There may be more due webhooks than this turn has read.
    waiting = due.length === CANDIDATES_MAX;
    for (const row of due) {
      const [id, account, receiver] = [row['id'] as string, row['account'] as string, row['receiver'] as string];
      if (closed.aborted) return;
      if (!ofAccounts.mayTake(account) || !ofReceivers.mayTake(receiver)) {
        waiting = true;
        continue;
      }
      const at = now();
      const claim = randomUUID();
      const [claimedRow] = await database.query(SQL.claimWebhook, [id, claim, at + limits.leaseMs, at]);
      if (claimedRow) start(toClaimed(id, claim, claimedRow));
      // The query gives at most `perAccountMax` webhooks per account, so the account may have more.
      if (claimedRow && !ofAccounts.mayTake(account)) waiting = true;
    }
  }

  function start(claimed: Claimed): void {
    const { account, receiver } = claimed;
    ofAccounts.take(account);
    ofReceivers.take(receiver);
    worker.start(
      () => sendAll(claimed),
      () => {
        ofAccounts.leave(account);
        ofReceivers.leave(receiver);
        if (waiting) worker.wake();
      },
    );
  }

  const signed = (key: string, id: string, body: string): Readonly<Record<string, string>> => {
    const seconds = Math.floor(now() / 1000);
    return { [SIGNATURE]: signatureOf(key, seconds, body), ...standardHeaders(key, { id, seconds, body }) };
  };

  /** Sends one delivery. Resolves with `stopped` if `close` aborted it. */
  async function send(webhook: Claimed, row: Row): Promise<Attempt | 'stopped'> {
    const receiver = openReceiver(texts, webhook.sealOf, row['sealed'] as string);
    if (receiver === null) return { outcome: 'never', reason: 'its secrets were sealed by another identity' };
    const { headers: own, signingKey } = receiver;
    const body = row['body'] as string;
    const headers = {
      ...own,
      'content-type': row['content_type'] as string,
      ...(signingKey === undefined ? {} : signed(signingKey, `${webhook.id}-${Number(row['position'])}`, body)),
    };
    try {
      const reply = await fetch(receiver.url, {
        method: 'POST',
        headers,
        body,
        timeoutMs: limits.timeoutMs,
        bodyBytesMax: 0,
        signal: closed,
      });
      return {
        outcome: outcomeOf(reply.status),
        reason: `the receiver answered ${reply.status}`,
        retryAfter: reply.headers['retry-after'],
      };
    } catch (error) {
      if (closed.aborted) return 'stopped';
      const refused = error instanceof OutboundFailure && error.refused;
      return {
        outcome: refused ? 'never' : 'again',
        reason: error instanceof OutboundFailure ? error.message : 'the call failed',
      };
    }
  }

  /**
   * Sends the deliveries of a webhook one after the other, until the queue is empty or its head must wait for a retry.
   */
  async function sendAll(webhook: Claimed): Promise<void> {
    const { id, claim } = webhook;
    for (;;) {
      const [row] = await database.query(SQL.nextDelivery, [id, claim]);
      // The webhook was deleted, or another gateway has claimed it.
      if (!row) return;
      if (row['position'] === null) {
        const [rested] = await database.query(SQL.restWebhook, [id, claim, row['signal']!, now()]);
        if (rested && rested['due_at'] !== null) worker.wake();
        return;
      }
      if (closed.aborted) return void (await database.query(SQL.releaseWebhook, [id, claim, row['attempts']!, now()]));
      const attempt = await send(webhook, row);
      if (attempt === 'stopped')
        return void (await database.query(SQL.releaseWebhook, [id, claim, row['attempts']!, now()]));
      if (!(await recordOutcome(webhook, row, attempt))) return;
    }
  }

  /** Records the result of an attempt. Resolves with true if the next delivery can be sent now. */
  async function recordOutcome(
    { id, claim, lost }: Claimed,
    row: Row,
    { outcome, reason, retryAfter }: Attempt,
  ): Promise<boolean> {
    const attempts = Number(row['attempts']) + 1;
    const delay = outcome === 'again' ? delayAfter(attempts, random, retryAfter) : null;
    if (delay !== null) {
      await database.query(SQL.releaseWebhook, [id, claim, attempts, now() + delay]);
      return false;
    }
    if (outcome !== 'delivered')
      onLost({ ...lost, reason: outcome === 'again' ? `${reason}, the last of ${attempts} times` : reason });
    // The rows are locked in the same order as when a delivery is queued, to avoid deadlocks.
    await database.batch([
      { statement: SQL.keepClaim, params: [id, claim, now() + limits.leaseMs] },
      outcome === 'gone'
        ? { statement: SQL.endWebhook, params: [id, claim, row['sealed']!] }
        : { statement: SQL.endDelivery, params: [id, row['position']!] },
    ]);
    return true;
  }

  return worker;
}

/** The result of one attempt. `retryAfter` is the receiver's header. */
interface Attempt {
  readonly outcome: DeliveryOutcome;
  readonly reason: string;
  readonly retryAfter?: unknown;
}

interface Claimed {
  readonly id: string;
  readonly claim: string;
  readonly account: string;
  readonly receiver: string;
  readonly sealOf: string;
  readonly lost: Omit<LostDelivery, 'reason'>;
}

function toClaimed(id: string, claim: string, row: Row): Claimed {
  const [account, receiver, service, taskId] = (['account', 'receiver', 'service', 'task_id'] as const).map(
    (name) => row[name] as string,
  );
  const key = { primitive: row['primitive'] as Primitive, service: service!, taskId: taskId! };
  const owner = { account: account!, within: row['run'] === '' ? null : (row['run'] as string) };
  return {
    id,
    claim,
    account: account!,
    receiver: receiver!,
    sealOf: sealOf(key, owner, row['name'] as string),
    lost: { account: account!, service: service!, taskId: taskId!, receiver: receiver! },
  };
}

export const SIGNATURE = 'x-tollgate-signature';

/** `t=<epoch seconds>,v1=<hex>`: HMAC-SHA256 of `<epoch seconds>.<body>`. */
export const signatureOf = (key: string, seconds: number, body: string): string =>
  `t=${seconds},v1=${createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex')}`;

/** The headers of Standard Webhooks. `id`: the same for all attempts of a delivery. The key begins with `whsec_`. */
function standardHeaders(
  key: string,
  { id, seconds, body }: { readonly id: string; readonly seconds: number; readonly body: string },
): Readonly<Record<string, string>> {
  const bytes = Buffer.from(key.slice(KEY_PREFIX.length), 'base64');
  const signature = createHmac('sha256', bytes).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` };
}

const KEY_PREFIX = 'whsec_';

/**
 * The meaning of a receiver's HTTP status for a delivery. `again`: retry it. `never`: drop it. `gone`: the receiver
 * wants no more deliveries, so the webhook ends.
 */
type DeliveryOutcome = 'delivered' | 'again' | 'never' | 'gone';

const TIMEOUT = 408;
const GONE = 410;
const TOO_EARLY = 425;
const TOO_MANY = 429;

/** A redirect gives `never`: it is not followed, and a retry would get the same answer. */
export function outcomeOf(status: number): DeliveryOutcome {
  if (status >= 200 && status < 300) return 'delivered';
  if (status === GONE) return 'gone';
  return status >= 500 || status === TIMEOUT || status === TOO_EARLY || status === TOO_MANY ? 'again' : 'never';
}

/** Delays after the first, second … attempt: five attempts in about ten minutes. */
const DELAYS_MS = [5_000, 30_000, 120_000, 420_000] as const;
const JITTER = 0.25;
/** A longer Retry-After of a receiver is shortened to this. */
const ASKED_MS_MAX = 600_000;

/**
 * Milliseconds until the next attempt, after `attempts` attempts; null after the last one. `retryAfter`: the receiver's
 * `Retry-After`, in seconds.
 */
export function delayAfter(attempts: number, random: () => number, retryAfter?: unknown): number | null {
  const delay = DELAYS_MS[attempts - 1];
  if (delay === undefined) return null;
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * random()));
  const askedMs = (retryAfterOf(retryAfter) ?? 0) * 1_000;
  return Math.max(jittered, Math.min(askedMs, ASKED_MS_MAX));
}
