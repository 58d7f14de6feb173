import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MEDIA_FOLDER } from '#store';
import { GatewayError, UpstreamFailure } from '#wire';
import type { Config } from '#config';
import {
  createBlobs,
  createFarBlobs,
  giveFile,
  openBlobFiles,
  openS3Files,
  removeOrphans,
  type Task,
  tellHolder,
} from '#tasks';
import { createCallbacks, createVideos } from '#media';
import type { Middle } from './middle.ts';
import type { openTasks } from './tasks.ts';

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
