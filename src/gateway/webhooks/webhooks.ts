import { createHash, randomUUID } from 'node:crypto';
import { createDueWorker, type Database, loadStatements, type Row, type Step } from '#store';
import { createSealedTexts, type SealSecret } from '#security';
import type { GuardedFetch } from '#network';
import type { TaskKey } from '#tasks';
import { createWebhookRelay, type RelayLimits } from './webhook-relay.ts';
import {
  createWebhookStore,
  type LostDelivery,
  type WebhookEvent,
  type WebhookStore,
  LAST_EVENT_TTL_MS,
  WEBHOOK_BODY_BYTES_MAX,
  WEBHOOK_TTL_MS,
} from './webhook.ts';

/** Webhooks of tasks: their registration, their queues, and the sending of deliveries. */
export interface Webhooks extends WebhookStore {
  /**
   * Delivers an event to the receivers of a task. Resolves with the number of receivers as soon as the deliveries are
   * stored in the database. They are sent from there, if necessary after a restart or by another gateway. Each receiver
   * gets its events in order, and a slow receiver does not delay others. Rejects with the database's error.
   */
  deliver(key: TaskKey, event: WebhookEvent): Promise<number>;
  /** Sends due deliveries, and resolves when no request is running any more. Sending also happens automatically. */
  run(): Promise<void>;
  close(): Promise<void>;
}

/** Deliveries that wait for receivers. */
interface Waiting {
  deliveries: number;
  bytes: number;
}

interface QueueLimits {
  /** Per webhook. Above this the oldest delivery is dropped. */
  readonly perWebhookMax: number;
  /** Per account (`perAccount…`), and of all accounts. Above these limits nothing more is queued. */
  readonly perAccountMax: number;
  readonly perAccountBytesMax: number;
  readonly max: number;
  readonly bytesMax: number;
}

export interface WebhooksOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly fetch: GuardedFetch;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: SealSecret;
  readonly now: () => number;
  readonly random?: () => number;
  /** Milliseconds between two polls for due deliveries; 0: only `deliver` and `run` send. Default one second. */
  readonly pollMs?: number;
  readonly queueLimits?: Partial<QueueLimits>;
  readonly relayLimits?: Partial<RelayLimits>;
  readonly onLost?: (lost: LostDelivery) => void;
  readonly onError?: (error: unknown) => void;
}

const POLL_MS = 1_000;
const SWEEP_MS = 600_000;
const SWEEP_BATCH = 1_000;
const MIB = 1024 * 1024;

const QUEUE_LIMITS: QueueLimits = {
  perWebhookMax: 100,
  perAccountMax: 1_000,
  perAccountBytesMax: 64 * MIB,
  max: 20_000,
  bytesMax: 1024 * MIB,
};

/** Digests of earlier events that are stored per webhook. Such an event is not delivered again. */
const REMEMBERED = 400;
/** The count over all accounts is cached for this time. */
const COUNT_MS = 2_000;

const SQL = loadStatements(import.meta.url, './sql/webhooks.sql', [
  'findReceivers',
  'countWaitingOfAccount',
  'countWaiting',
  'signalWebhook',
  'queueDelivery',
  'dropOldestDeliveries',
  'forgetDeliveries',
]);

export function createWebhooks({
  database,
  fetch,
  secret,
  now,
  pollMs = POLL_MS,
  ...options
}: WebhooksOptions): Webhooks {
  const { random = Math.random, onLost = () => {}, onError = () => {} } = options;
  const texts = createSealedTexts(secret);
  const relay = createWebhookRelay({
    database,
    fetch,
    texts,
    now,
    random,
    pollMs: pollMs === 0 ? null : pollMs,
    onLost,
    onError,
    ...(options.relayLimits ? { limits: options.relayLimits } : {}),
  });
  const store = createWebhookStore({ database, texts, now });
  const sweeper = createDueWorker({
    turn: async () => (await store.sweep(SWEEP_BATCH)) === SWEEP_BATCH,
    pauseMs: pollMs === 0 ? null : SWEEP_MS,
    onError,
  });

  const limits = { ...QUEUE_LIMITS, ...options.queueLimits };
  /** Accounts of wallets cost nothing, so all that never had money are one party. */
  const counted = { at: -Infinity, others: { deliveries: 0, bytes: 0 }, unfunded: { deliveries: 0, bytes: 0 } };
  const toWaiting = (row: Row | undefined): Waiting => ({
    deliveries: Number(row?.['deliveries'] ?? 0),
    bytes: Number(row?.['bytes'] ?? 0),
  });

  /** The reason why nothing more can be queued, or null. A party may have as much of the room as it leaves free. */
  const fullness = async (account: string, more: number): Promise<string | null> => {
    const [row] = await database.query(SQL.countWaitingOfAccount, [account]);
    const own = toWaiting(row);
    if (own.deliveries >= limits.perAccountMax || own.bytes >= limits.perAccountBytesMax)
      return 'too much waits for the receivers of the account';
    // `Math.abs`, so that a clock that was set back does not prolong the cache.
    if (Math.abs(now() - counted.at) >= COUNT_MS) {
      const rows = await database.query(SQL.countWaiting);
      counted.at = now();
      counted.others = toWaiting(rows.find(({ unfunded }) => Number(unfunded) === 0));
      counted.unfunded = toWaiting(rows.find(({ unfunded }) => Number(unfunded) === 1));
    }
    const { others, unfunded } = counted;
    const isUnfunded = Number(row!['unfunded']) === 1;
    const party = isUnfunded ? unfunded : own;
    const leavesFree = (member: keyof Waiting, most: number) =>
      party[member] < most - others[member] - unfunded[member];
    if (!leavesFree('deliveries', limits.max) || !leavesFree('bytes', limits.bytesMax))
      return 'too much waits for receivers';
    const sums = isUnfunded ? unfunded : others;
    sums.deliveries += 1;
    sums.bytes += more;
    return null;
  };

  /**
   * Queues an event for the receivers of a task. Each receiver gets events in order, and each event once. Resolves with
   * the number of receivers.
   */
  const queue = async (key: TaskKey, { identity, isLast = false, contentOf }: WebhookEvent): Promise<number> => {
    const { primitive, service, taskId } = key;
    const digest = createHash('sha256')
      .update(identity ?? randomUUID())
      .digest('base64url');
    const receivers = await database.query(SQL.findReceivers, [primitive, service, taskId, now(), digest]);
    if (receivers.length === 0) return 0;

    const steps: Step[] = [];
    for (const row of receivers) {
      const [webhook, account] = [row['id'] as string, row['account'] as string];
      const content = contentOf(row['form'] as string);
      if (content === null) continue;
      const bytes = Buffer.byteLength(content.body);
      const fault =
        bytes > WEBHOOK_BODY_BYTES_MAX
          ? `it has more than ${WEBHOOK_BODY_BYTES_MAX} bytes`
          : await fullness(account, bytes);
      if (fault !== null) {
        onLost({ account, service, taskId, receiver: null, reason: fault });
        continue;
      }
      const at = now();
      steps.push(
        { statement: SQL.signalWebhook, params: [webhook, at, at + (isLast ? LAST_EVENT_TTL_MS : WEBHOOK_TTL_MS)] },
        { statement: SQL.queueDelivery, params: [webhook, digest, content.contentType, content.body, bytes] },
        { statement: SQL.dropOldestDeliveries, params: [webhook, limits.perWebhookMax] },
        { statement: SQL.forgetDeliveries, params: [webhook, REMEMBERED] },
      );
    }
    if (steps.length === 0) return 0;
    const results = await database.batch(steps);
    return results.filter((rows, index) => steps[index]!.statement === SQL.queueDelivery && rows.length > 0).length;
  };

  return {
    ...store,
    async deliver(key, event) {
      const queued = await queue(key, event);
      if (queued > 0) relay.wake();
      return queued;
    },
    run: relay.run,
    async close() {
      await Promise.all([relay.close(), sweeper.close()]);
    },
  };
}
