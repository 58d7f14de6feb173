import { createDueWorker, type Database } from '#store';
import { createSealedTexts } from '#wire';
import type { GuardedFetch } from '#network';
import type { TaskKey } from '../task.ts';
import { createWebhookQueue, type QueueLimits } from './webhook-queue.ts';
import { createWebhookRelay, type RelayLimits } from './webhook-relay.ts';
import { createWebhookStore } from './webhook-store.ts';
import type { LostDelivery, WebhookEvent, WebhookStore } from './webhook.ts';

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

export interface WebhooksOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly fetch: GuardedFetch;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: Uint8Array;
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
  const queue = createWebhookQueue({
    database,
    now,
    onLost,
    ...(options.queueLimits ? { limits: options.queueLimits } : {}),
  });
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
