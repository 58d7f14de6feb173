import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createSettlePendingCall } from '#billing/compose';
import { createOffersById } from '#catalog';
import { createGuardedFetch } from '#network';
import { createBudgetNotices, createWebhooks } from '#webhooks';
import { createTasks, createTaskWatch, type TaskSink, type TaskWatchOptions, type Task } from '#tasks';
import { createBlobs, createFarBlobs, giveFile, openBlobFiles, openS3Files, removeOrphans, tellHolder } from '#files';
import { createTaskLog } from '#observe';
import { createPush } from '#a2a';
import { MEDIA_FOLDER } from '#store';
import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import type { Config } from '#config';
import { createCallbacks, createVideos } from '#media';
import type { Middle } from './middle.ts';

/** Tasks that outlive their calls, and the webhooks that report them. */
export function openTasks(middle: Middle) {
  const { config, identity, database, ledger, catalog, logger, outages, metrics, opened, late, now, random } = middle;
  const offerOf = createOffersById(catalog);
  const sinks: readonly TaskSink[] = [createTaskLog(logger), metrics.tasks];
  const tasks = createTasks({
    database,
    ledger,
    liveMax: config.tasks.liveMax,
    settlePendingCall: createSettlePendingCall({ ledger, prices: middle.prices, feeBps: config.billing.feeBps }),
    now,
    onBegun: (task) => sinks.forEach((sink) => sink.begun?.(task)),
    onEnded: (task, gaveUp) => sinks.forEach((sink) => sink.ended?.(task, gaveUp)),
    tellGivenUp: async (task) => {
      if (task.primitive === 'video') await late.gaveUpVideo(task);
    },
    onConcluded(call) {
      for (const sink of sinks) sink.concluded?.(call);
      const offer = offerOf(call.task.offerId);
      if (offer) for (const flag of call.flags) middle.health.flagged(offer, flag);
    },
    receipt: middle.pastReceipts.ofRecord,
    providerName: (offerId) => offerOf(offerId)?.provider.name ?? null,
  });
  const secret = identity.secret('webhooks');
  const { allowPrivate } = config.webhooks;
  const onError = (error: unknown) =>
    outages.failed('webhooks', { err: error }, 'webhooks could not be delivered; they are tried again');
  const webhooks = createWebhooks({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret,
    now,
    random,
    onError,
    onLost: (lost) => logger.info({ ...lost }, 'a webhook was given up'),
  });
  opened.defer(() => webhooks.close());
  const notices = createBudgetNotices({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret: identity.secret('account webhooks'),
    now,
    onNotice: ({ event: _event, time: _time, ...facts }, isOperators) => {
      const { of, account, percent } = facts;
      // Only a budget of the operator is an alert. A customer's own budget is the customer's concern, and many can be
      // reached at once.
      logger.warn(
        { ...(isOperators ? { alert: true } : {}), ...facts },
        `a budget is spent to ${percent} %: ${of} of ${account}`,
      );
    },
    onLost: (lost) => logger.info({ ...lost }, 'the webhook of an account was given up'),
    onError: (error) => outages.failed('budgets', { err: error }, 'budgets could not be checked; it is tried again'),
  });
  opened.defer(() => notices.close());
  const push = createPush({
    webhooks,
    tasks,
    catalog,
    allowPrivate,
    publicUrl: config.publicUrl,
    poll: (task, signal, whole) => late.pollAgent(task, signal, whole),
    secret,
    limits: config.limits,
    now,
    onError,
  });
  return { tasks, push, webhooks, notices, offerOf };
}

/** Polls the live tasks, so that their ends are noticed even if no client asks. */
export function watchTasks(
  { config, database, outages, opened, present, now, random }: Middle,
  { tasks, offerOf }: Pick<ReturnType<typeof openTasks>, 'tasks' | 'offerOf'>,
  { polls, pollsAtExpiry }: Pick<TaskWatchOptions, 'polls' | 'pollsAtExpiry'>,
): void {
  const watch = createTaskWatch({
    database,
    tasks,
    polls,
    pollsAtExpiry,
    present: ({ offerId }) => {
      const offer = offerOf(offerId);
      return offer !== undefined && present(offer);
    },
    providerOf: ({ offerId }) => offerOf(offerId)?.provider.id ?? offerId,
    now,
    random,
    lookMsMax: config.tasks.lookMsMax,
    retentionMs: config.tasks.retentionMs,
    alone: database.engine === 'sqlite',
    onError: (error) => outages.failed('tasks', { err: error }, 'running tasks cannot be checked; it is tried again'),
  });
  opened.defer(() => watch.close());
}

const ORPHANS_EVERY_MS = 3_600_000;

/** The files of large results, and the videos that are stored as such files. */
export async function openMedia(
  middle: Middle,
  { tasks, webhooks, offerOf }: Pick<ReturnType<typeof openTasks>, 'tasks' | 'webhooks' | 'offerOf'>,
) {
  const { config, database, identity, cluster, pipeline, logger, outages, opened, late, now, elapsed, onError } =
    middle;
  const [files, ...former] = await openStores(config);
  // Files of a former store are served until they expire. The former store is a local folder, so it is searched first.
  const stores = [...former, files];
  const far = cluster.peers === null ? null : createFarBlobs(database, cluster.peers);
  if (cluster.listener !== null)
    for (const { holder } of stores) await tellHolder(database, holder, cluster.listener.url);
  const onUnremoved = (error: unknown) =>
    outages.failed('expired files', { err: error }, 'expired files could not be removed; it is tried again');
  const blobs = createBlobs({ database, files, former, far, limits: config.media, now, onUnremoved });
  late.giveFile = (stream, asked) => void giveFile(stores, stream, asked);
  const clean = () =>
    void Promise.all(stores.map((store) => removeOrphans({ database, files: store, now }))).then(
      (counts) => {
        const removed = counts.reduce((sum, count) => sum + count, 0);
        if (removed > 0) logger.info({ files: removed }, 'files that belong to no task were removed');
      },
      (error: unknown) => outages.failed('file store', { err: error }, 'the file store could not be listed'),
    );
  clean();
  const cleaning = setInterval(clean, ORPHANS_EVERY_MS).unref();
  opened.defer(() => clearInterval(cleaning));
  const callbacks = createCallbacks(webhooks, identity.secret('callbacks of videos'));
  const videos = createVideos({
    pipeline,
    tasks,
    blobs,
    downloadTimeoutMs: config.media.downloadTimeoutMs,
    leastPace: config.media.downloadBytesPerSecondMin,
    tell: callbacks.tell,
    onUnseen(error) {
      // The operator must act on a full disk or an unreachable store, but not on a provider's faults.
      const text = 'a video could not be checked or fetched; it is tried again';
      if (isOfProvider(error)) logger.debug({ err: error }, text);
      else outages.failed('videos', { err: error }, text);
    },
    now,
    elapsed,
  });
  opened.defer(() => videos.close());
  late.gaveUpVideo = (task) => videos.gaveUp(task);
  const providerName = ({ offerId, provider }: Task) => offerOf(offerId)?.provider.name ?? provider;
  return {
    blobs,
    videos,
    videoRouteDeps: { pipeline, tasks, blobs, videos, providerName, config, callbacks, onError, now },
  };
}

/** The store for new files, and then the former local store if its folder exists. */
async function openStores({ dataDir, media }: Pick<Config, 'dataDir' | 'media'>) {
  const folder = join(dataDir, MEDIA_FOLDER);
  const { s3Url: url, s3Region: region, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = media;
  if (url === null || accessKeyId === null || secretAccessKey === null) return [await openBlobFiles(folder)] as const;
  const former = existsSync(folder) ? [await openBlobFiles(folder)] : [];
  return [await openS3Files({ url, region, accessKeyId, secretAccessKey }), ...former] as const;
}

function isOfProvider(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : null;
  return cause instanceof UpstreamFailure || cause instanceof GatewayError;
}
