import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BlobFiles,
  type Blobs,
  createBlobs,
  createFarBlobs,
  openBlobFiles,
  openS3Files,
  removeOrphans,
  tellHolder,
} from '#files';
import { MEDIA_FOLDER } from '#store';
import type { Config } from '#config';
import type { Phases } from './calls.ts';

export interface LargeFiles {
  readonly blobs: Blobs;
  /** The store for new files, and stores that still have older ones. */
  readonly stores: readonly BlobFiles[];
}

const ORPHANS_EVERY_MS = 3_600_000;

export async function openFiles({ foundation, network }: Phases): Promise<LargeFiles> {
  const { config, database, logger, outages, resources, now } = foundation;
  const { listener, peers } = network.cluster;
  const [files, ...former] = await openStores(config);
  // Files of a former store are served until they expire. The former store is a local folder, so it is searched first.
  const stores = [...former, files];
  const far = peers === null ? null : createFarBlobs(database, peers);
  if (listener !== null) for (const { holder } of stores) await tellHolder(database, holder, listener.url);
  const onUnremoved = (error: unknown) =>
    outages.failed('expired files', { err: error }, 'expired files could not be removed; it is tried again');
  const blobs = createBlobs({ database, files, former, far, limits: config.media, now, onUnremoved });
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
  resources.defer(() => clearInterval(cleaning));
  return { blobs, stores };
}

/** The store for new files, and then the former local store if its folder exists. */
async function openStores({ dataDir, media }: Pick<Config, 'dataDir' | 'media'>) {
  const folder = join(dataDir, MEDIA_FOLDER);
  const { s3Url: url, s3Region: region, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = media;
  if (url === null || accessKeyId === null || secretAccessKey === null) return [await openBlobFiles(folder)] as const;
  const former = existsSync(folder) ? [await openBlobFiles(folder)] : [];
  return [await openS3Files({ url, region, accessKeyId, secretAccessKey }), ...former] as const;
}
