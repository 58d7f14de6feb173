import { createHash, randomUUID } from 'node:crypto';
import { loadStatement, type Database, type Step } from '#store';
import type { TaskKey } from '../task.ts';
import {
  LAST_EVENT_TTL_MS,
  WEBHOOK_BODY_BYTES_MAX,
  WEBHOOK_TTL_MS,
  type LostDelivery,
  type WebhookEvent,
} from './webhook.ts';

const RECEIVERS = loadStatement(import.meta.url, './sql/find-receivers.sql');
const WAITING_OF_ACCOUNT = loadStatement(import.meta.url, './sql/count-waiting-of-account.sql');
const WAITING = loadStatement(import.meta.url, './sql/count-waiting.sql');
const SIGNAL = loadStatement(import.meta.url, './sql/signal-webhook.sql');
const QUEUE = loadStatement(import.meta.url, './sql/queue-delivery.sql');
const DROP_OLDEST = loadStatement(import.meta.url, './sql/drop-oldest-deliveries.sql');
const FORGET = loadStatement(import.meta.url, './sql/forget-deliveries.sql');

export interface QueueLimits {
  /** Per webhook. Above this the oldest delivery is dropped. */
  readonly perWebhookMax: number;
  /** Per account (`perAccount…`), and of all accounts. Above these limits nothing more is queued. */
  readonly perAccountMax: number;
  readonly perAccountBytesMax: number;
  readonly max: number;
  readonly bytesMax: number;
}

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

interface WebhookQueueOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly now: () => number;
  readonly limits?: Partial<QueueLimits>;
  readonly onLost: (lost: LostDelivery) => void;
}

/**
 * Queues an event for the receivers of a task. Each receiver gets events in order, and each event once. Resolves with
 * the number of receivers.
 */
type QueueEvent = (key: TaskKey, event: WebhookEvent) => Promise<number>;

export function createWebhookQueue({ database, now, onLost, ...options }: WebhookQueueOptions): QueueEvent {
  const limits = { ...QUEUE_LIMITS, ...options.limits };
  let counted = { at: -Infinity, deliveries: 0, bytes: 0 };

  /** The reason why nothing more can be queued, or null. */
  const fullness = async (account: string): Promise<string | null> => {
    const [own] = await database.query(WAITING_OF_ACCOUNT, [account]);
    if (Number(own!['deliveries']) >= limits.perAccountMax || Number(own!['bytes']) >= limits.perAccountBytesMax)
      return 'too much waits for the receivers of the account';
    // `Math.abs`, so that a clock that was set back does not prolong the cache.
    if (Math.abs(now() - counted.at) >= COUNT_MS) {
      const [all] = await database.query(WAITING);
      counted = { at: now(), deliveries: Number(all!['deliveries']), bytes: Number(all!['bytes']) };
    }
    return counted.deliveries >= limits.max || counted.bytes >= limits.bytesMax ? 'too much waits for receivers' : null;
  };

  return async (key, { identity, isLast = false, contentOf }) => {
    const { primitive, service, taskId } = key;
    const digest = createHash('sha256')
      .update(identity ?? randomUUID())
      .digest('base64url');
    const receivers = await database.query(RECEIVERS, [primitive, service, taskId, now(), digest]);
    if (receivers.length === 0) return 0;

    const steps: Step[] = [];
    for (const row of receivers) {
      const [webhook, account] = [row['id'] as string, row['account'] as string];
      const content = contentOf(row['form'] as string);
      if (content === null) continue;
      const bytes = Buffer.byteLength(content.body);
      const fault =
        bytes > WEBHOOK_BODY_BYTES_MAX ? `it has more than ${WEBHOOK_BODY_BYTES_MAX} bytes` : await fullness(account);
      if (fault !== null) {
        onLost({ account, service, taskId, receiver: null, reason: fault });
        continue;
      }
      const at = now();
      steps.push(
        { statement: SIGNAL, params: [webhook, at, at + (isLast ? LAST_EVENT_TTL_MS : WEBHOOK_TTL_MS)] },
        { statement: QUEUE, params: [webhook, digest, content.contentType, content.body, bytes] },
        { statement: DROP_OLDEST, params: [webhook, limits.perWebhookMax] },
        { statement: FORGET, params: [webhook, REMEMBERED] },
      );
      counted.deliveries += 1;
      counted.bytes += bytes;
    }
    if (steps.length === 0) return 0;
    const results = await database.batch(steps);
    return results.filter((rows, index) => steps[index]!.statement === QUEUE && rows.length > 0).length;
  };
}
