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
  type FetchInputs,
  videoRoutes,
  type Videos,
} from '#media';
import { ownUrlOf } from './addresses.ts';
import type { Phases } from './calls.ts';
import type { LargeFiles } from './files.ts';
import { API, mount } from './mount.ts';
import type { RouteParts } from './route-parts.ts';
import type { Work } from './work.ts';

interface MediaParts {
  readonly videos: Videos;
  readonly callbacks: Callbacks;
  readonly fetchInputs: FetchInputs;
}

export function openMedia(
  { foundation, access, calls }: Phases,
  { tasks, webhooks }: Work,
  { blobs }: LargeFiles,
): MediaParts {
  const { config, identity, logger, outages, resources, now, elapsed } = foundation;
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
  resources.defer(() => videos.close());
  const fetchInputs = createFetchInputs(config.webhooks, access.http.server.requestBodies);
  return { videos, callbacks, fetchInputs };
}

function isOfProvider(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : null;
  return cause instanceof UpstreamFailure || cause instanceof GatewayError;
}

export async function mountImages(
  { foundation, access, calls }: Phases,
  { files, targets, quote }: RouteParts,
  { fetchInputs }: MediaParts,
): Promise<void> {
  const { config, onError } = foundation;
  const { http, payments } = access;
  const { catalog } = http;
  const { pipeline, idempotency, quotes } = calls;
  const { blobs } = files;
  targets.add({ image: createImageTarget({ catalog, config, pipeline, fetchInputs }) });
  const paid = { pipeline, idempotency, payments, quotes, quote, config, fetchInputs, onError };
  await mount(http.server, { images: imageRoutes({ ...paid, blobs }) }, API);
}

export async function mountVideos(
  { foundation, access, calls }: Phases,
  { work, files, targets, quote }: RouteParts,
  { videos, callbacks, fetchInputs }: MediaParts,
): Promise<void> {
  const { config, now, onError } = foundation;
  const { http, payments } = access;
  const { server, catalog } = http;
  const { pipeline, idempotency, quotes } = calls;
  const { tasks, offerOf } = work;
  const { blobs } = files;
  const ownUrl = () => ownUrlOf(config, server);
  const parts = { tasks, blobs, videos, callbacks, fetchInputs, config, now };
  targets.add({ video: createVideoTarget({ catalog, ownUrl, ...parts }) });
  const paid = { pipeline, idempotency, payments, quotes, quote, onError };
  await mount(server, { videos: videoRoutes({ ...paid, ...parts, offerOf }) }, API);
}
