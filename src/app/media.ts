import { join } from 'node:path';
import { createBlobs, createFarBlobs, giveFile, openBlobFiles, removeOrphans, tellHolder } from '#tasks';
import { createCallbacks, createVideos } from '#media';
import type { Middle } from './middle.ts';
import type { openTasks } from './tasks.ts';

const FOLDER = 'blobs';
const ORPHANS_EVERY_MS = 3_600_000;

/** The files of large results, and the videos that become such files. */
export async function openMedia(
  middle: Middle,
  { tasks, webhooks }: Pick<ReturnType<typeof openTasks>, 'tasks' | 'webhooks'>,
) {
  const { config, database, identity, cluster, pipeline, logger, opened, late, now, onError } = middle;
  const files = await openBlobFiles(join(config.dataDir, FOLDER));
  const far = cluster.peers === null ? null : createFarBlobs(database, cluster.peers);
  if (cluster.listener !== null) await tellHolder(database, files.holder, cluster.listener.url);
  const blobs = createBlobs({ database, files, far, limits: config.media, now });
  late.giveFile = (stream, asked) => void giveFile(files, stream, asked);
  const clean = () =>
    void removeOrphans({ database, files, now }).then(
      (removed) => {
        if (removed > 0) logger.info({ files: removed }, 'files that belong to no task were removed');
      },
      (error: unknown) => logger.warn({ err: error }, 'the folder of files could not be looked through'),
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
    tell: callbacks.tell,
    onUnseen: (error) => logger.debug({ err: error }, 'a video could not be looked at or fetched; it is tried again'),
    now,
  });
  opened.defer(() => videos.close());
  late.gaveUpVideo = (task) => videos.gaveUp(task);
  return {
    blobs,
    videos,
    videoDoors: { pipeline, tasks, blobs, videos, config, callbacks, onError, now },
  };
}
