import type { Price } from '#billing/amounts';
import type { Offer } from '#catalog';
import type { VideoAsk } from './request/video-ask.ts';
import { unprocessable } from '../media-error.ts';

export interface VideoPlan {
  /** Length of each variant. */
  readonly seconds: number;
  readonly resolution: string;
  readonly audio: boolean;
}

const WITH_AUDIO = '+audio';
const USUAL_RESOLUTION = '720p';

/**
 * The length, the resolution and the sound that an offer is asked for. They are fixed before the lock, and are sent
 * to the provider. Throws GatewayError `unprocessable` for a value that the offer does not make.
 */
export function planAt(ask: VideoAsk, { service, provider, media }: Offer): VideoPlan {
  const { durations, resolutions } = media!;
  const seconds = ask.seconds ?? (durations.length > 0 ? Number.parseInt(durations[0]!, 10) : null);
  const name = ask.names['duration'] ?? 'duration';
  if (seconds === null) throw unprocessable(name, `${service} of ${provider.name} lists no lengths. Send ${name}`);
  if (durations.length > 0 && !durations.includes(`${seconds}s`)) {
    // A field that is called seconds has numbers without a unit.
    const printed = (length: string) => (name === 'seconds' ? length.replace(/s$/, '') : length);
    throw unprocessable(
      name,
      `${name} ${printed(`${seconds}s`)} is not made by ${provider.name}; it makes ${durations.map(printed).join(', ')}`,
    );
  }
  const usual = resolutions.includes(USUAL_RESOLUTION) ? USUAL_RESOLUTION : resolutions[0]!;
  const resolution = ask.resolution ?? usual;
  if (!resolutions.includes(resolution)) {
    const sizeText = ask.size === null ? '' : ` (size ${ask.size.width}x${ask.size.height})`;
    throw unprocessable(
      ask.size === null ? 'resolution' : 'size',
      `resolution ${resolution}${sizeText} is not made by ${provider.name}; it makes ${resolutions.join(', ')}`,
    );
  }
  return { seconds, resolution, audio: ask.audio };
}

/**
 * The price of this request at an offer: for each second in its resolution, with or without sound, and for each
 * video.
 */
export const videoPrice = (ask: VideoAsk, offer: Offer): Price =>
  offer.variants[videoVariant(planAt(ask, offer))] ?? offer.price;

export const videoVariant = ({ resolution, audio }: Pick<VideoPlan, 'resolution' | 'audio'>): string =>
  audio ? resolution + WITH_AUDIO : resolution;
