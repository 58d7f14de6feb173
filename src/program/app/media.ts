import { UpstreamFailure } from '#wire';
import { GatewayError } from '#errors';
import {
  createCallbacks,
  createFetchInputs,
  createImageTarget,
  createVideos,
  createVideoTarget,
  imageRoutes,
  type Callbacks,
  videoRoutes,
  type Videos,
} from '#media';
import { ownUrlOf } from './addresses.ts';
import type { Phases } from './calls.ts';
import type { LargeFiles } from './files.ts';
import { API, mount } from './mount.ts';
import type { RouteParts } from './route-parts.ts';
import type { Work } from './work.ts';

/** Videos, whose calls go on as tasks. */
interface VideoParts {
  readonly videos: Videos;
  readonly callbacks: Callbacks;
}

export function openVideos(
  { foundation, calls }: Phases,
  { tasks, webhooks }: Work,
  { blobs }: LargeFiles,
): VideoParts {
  const { config, identity, logger, outages, opened, now, elapsed } = foundation;
  const callbacks = createCallbacks(webhooks, identity.secret('callbacks of videos'));
  const videos = createVideos({
    pipeline: calls.pipeline,
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
  return { videos, callbacks };
}

function isOfProvider(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : null;
  return cause instanceof UpstreamFailure || cause instanceof GatewayError;
}

/** The routes of images and videos. */
export async function mountMedia(
  { foundation, access, calls }: Phases,
  { work, files, targets, quote }: RouteParts,
  { videos, callbacks }: VideoParts,
): Promise<void> {
  const { config, now, onError } = foundation;
  const { http, payments } = access;
  const { server, catalog } = http;
  const { pipeline, idempotency, quotes } = calls;
  const { tasks } = work;
  const { blobs } = files;
  const fetchInputs = createFetchInputs(config.webhooks, server.requestBodies);
  const paid = { pipeline, idempotency, payments, quotes, quote, config, fetchInputs, onError };
  const ofVideos = { tasks, blobs, videos, callbacks, offerOf: work.offerOf, now };
  const ownUrl = () => ownUrlOf(config, server);
  targets.add({
    image: createImageTarget({ catalog, config, pipeline, fetchInputs }),
    video: createVideoTarget({ catalog, config, fetchInputs, ownUrl, ...ofVideos }),
  });
  await mount(server, { images: imageRoutes({ ...paid, blobs }), videos: videoRoutes({ ...paid, ...ofVideos }) }, API);
}
