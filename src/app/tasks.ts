import type { Database } from '#store';
import { createConclude, type Ledger, type LockRecord, type PriceBook } from '#billing';
import type { Config } from '#config';
import type { Catalog, Offer, ProviderFlag } from '#gateway';
import type { Identity } from '#auth';
import { createGuardedFetch } from '#network';
import {
  createTasks,
  createTaskWatch,
  createWebhooks,
  type KeptTasks,
  type Look,
  type Task,
  type TaskSink,
  type TaskWatch,
  type TaskWatchOptions,
} from '#tasks';
import { createTaskLog, type Logger, type Metrics } from '#observe';
import { createPush, type PushNotifications } from '#a2a';

export interface TaskRoomOptions {
  readonly config: Pick<Config, 'tasks' | 'billing' | 'webhooks' | 'publicUrl' | 'limits'>;
  readonly identity: Pick<Identity, 'secret'>;
  readonly database: Database;
  readonly ledger: Ledger;
  readonly prices: PriceBook;
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'tasks'>;
  /** The signed receipt of a settled call; null for one that was not charged. */
  readonly receipt: (record: LockRecord) => string | null;
  readonly present: (offer: Offer) => boolean;
  /** Counts what is wrong with an end for its provider. */
  readonly flagged: (offer: Offer, flag: ProviderFlag) => void;
  readonly now: () => number;
  readonly random: () => number;
}

/** Tasks that outlive their calls: what is noted of them, and who looks after them. */
export interface TaskRoom {
  readonly tasks: KeptTasks;
  /** Clients' webhooks, which are told of what is seen of their tasks. */
  readonly push: PushNotifications;
  /** Begins to look at the tasks that go on. */
  watch(looks: TaskWatchOptions['looks']): TaskWatch;
  close(): Promise<void>;
}

export function openTasks(options: TaskRoomOptions): TaskRoom {
  const { config, database, ledger, catalog, logger, metrics, present, now, random } = options;
  let offers = { version: -1, byId: new Map<string, Offer>() };
  const offerOf = (offerId: string): Offer | undefined => {
    const version = catalog.version();
    if (offers.version !== version)
      offers = { version, byId: new Map(catalog.offers().map((offer) => [offer.id, offer])) };
    return offers.byId.get(offerId);
  };
  const sinks: readonly TaskSink[] = [createTaskLog(logger), metrics.tasks];
  const tasks = createTasks({
    database,
    ledger,
    liveMax: config.tasks.liveMax,
    conclude: createConclude({ ledger, prices: options.prices, feeBps: config.billing.feeBps }),
    now,
    onBegun: (task) => sinks.forEach((sink) => sink.begun?.(task)),
    onEnded: (task, gaveUp) => sinks.forEach((sink) => sink.ended?.(task, gaveUp)),
    onConcluded(call) {
      for (const sink of sinks) sink.concluded?.(call);
      const offer = offerOf(call.task.offerId);
      if (offer) for (const flag of call.flags) options.flagged(offer, flag);
    },
    receipt: options.receipt,
    providerName: (offerId) => offerOf(offerId)?.provider.name ?? null,
  });
  const secret = options.identity.secret('webhooks');
  const { allowPrivate } = config.webhooks;
  const onError = (error: unknown) => logger.warn({ err: error }, 'webhooks could not be told; it is tried again');
  const webhooks = createWebhooks({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret,
    now,
    random,
    onError,
    onLost: (lost) => logger.info({ ...lost }, 'a webhook was given up'),
  });
  let lookAtAgent: Look | undefined;
  const look: Look = async (task, signal, whole) => (await lookAtAgent?.(task, signal, whole)) ?? null;
  const push = createPush({
    webhooks,
    tasks,
    catalog,
    allowPrivate,
    publicUrl: config.publicUrl,
    look,
    secret,
    limits: config.limits,
    now,
    onError,
  });
  return {
    tasks,
    push,
    close: () => webhooks.close(),
    watch(looks) {
      lookAtAgent = looks.agent;
      return createTaskWatch({
        database,
        tasks,
        looks,
        present: ({ offerId }: Task) => {
          const offer = offerOf(offerId);
          return offer !== undefined && present(offer);
        },
        providerOf: ({ offerId }) => offerOf(offerId)?.provider.id ?? offerId,
        now,
        random,
        lookMsMax: config.tasks.lookMsMax,
        retentionMs: config.tasks.retentionMs,
        alone: database.engine === 'sqlite',
        onError: (error) => logger.warn({ err: error }, 'the tasks that go on cannot be looked at; it is tried again'),
      });
    },
  };
}
