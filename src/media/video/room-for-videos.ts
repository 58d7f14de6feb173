import type { MicroUsd } from '#billing/amounts';
import type { Call, Offer } from '#gateway';
import type { Blobs, Tasks, WantedRoom } from '#tasks';
import type { VideoAsk } from './request/video-ask.ts';
import { planAt } from './video-price.ts';
import { sizeAt } from './wires/openai-videos.ts';

/**
 * Bytes of a second for each pixel of a picture: 15 Mbit/s in 720p, 33 in 1080p and 133 in 4K. This is more than video
 * models make. A file that is larger nevertheless takes more room while it arrives.
 */
const BYTES_PER_PIXEL = 2;
const USUAL_FRAME_RATE = 30;
/** Sound, headers, and the first picture of a short video. */
const FILE_BYTES_MIN = 4 * 1024 * 1024;
const MIB = 1024 * 1024;
/** Whoever pays less than this for each MiB, in micro-USD, could take all room for next to nothing. */
const FREE_BELOW = 100n;

/** The room for the files of a request at one offer. `estimate`: what the request costs there at most. */
export function roomAt(ask: VideoAsk, offer: Offer, estimate: MicroUsd): WantedRoom & { readonly fileBytes: number } {
  const [width, height] = sizeAt(ask, offer).split('x').map(Number);
  const frames = Math.max(1, Number(ask.more['frame_rate'] ?? 0) / USUAL_FRAME_RATE);
  const film = Math.ceil(planAt(ask, offer).seconds * width! * height! * BYTES_PER_PIXEL * frames);
  const fileBytes = Math.max(FILE_BYTES_MIN, film);
  return { files: ask.n, fileBytes, isFree: estimate * BigInt(MIB) < FREE_BELOW * BigInt(ask.n * fileBytes) };
}

/**
 * Checks that an account has room for the videos of a call. Rejects with GatewayError if it has no room for the task or
 * for its files.
 */
export const roomForVideos =
  (tasks: Pick<Tasks, 'admit'>, blobs: Pick<Blobs, 'admit'>, ask: VideoAsk) =>
  async ({ caller: { account }, candidates }: Call): Promise<void> => {
    await tasks.admit(account);
    const rooms = candidates.map(({ offer, estimate }) => roomAt(ask, offer, estimate));
    await blobs.admit(account, {
      files: ask.n,
      fileBytes: Math.max(...rooms.map(({ fileBytes }) => fileBytes)),
      // A free offer among others may be passed over.
      isFree: rooms.every(({ isFree }) => isFree),
    });
  };
