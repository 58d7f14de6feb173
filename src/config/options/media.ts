import { whole } from '../option.ts';
import { HOUR_MS, KIB, MIB, MINUTE_MS } from '../units.ts';

const GIB = 1024 * MIB;
const TIB = 1024 * GIB;

/** `[media]`: videos, and the files of large results. */
export const MEDIA = {
  video_ttl_ms: whole({
    min: 1_000,
    max: 7 * 24 * HOUR_MS,
    default: 2 * HOUR_MS,
    meaning: 'How long a video may take. What is locked for it then goes back.',
  }),
  keep_ms: whole({
    min: 1_000,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning: 'How long a finished video can be fetched.',
  }),
  download_timeout_ms: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: 15 * MINUTE_MS,
    meaning: 'Longest download of a file from its provider. One that fails is tried again.',
  }),
  file_bytes_max: whole({ min: KIB, max: GIB - 1, default: 256 * MIB, meaning: 'Largest file that is kept.' }),
  account_bytes_max: whole({
    min: KIB,
    max: 1024 * TIB,
    default: 4 * GIB,
    meaning: 'Bytes of the files of one account. A video is refused if it might not fit.',
  }),
  bytes_max: whole({
    min: KIB,
    max: 1024 * TIB - 1,
    default: 20 * GIB,
    meaning: 'Bytes of all files. A video is refused if it might not fit.',
  }),
  free_bytes_min: whole({
    min: 0,
    max: 1024 * TIB - 1,
    default: GIB,
    meaning: 'Bytes of the disk that files leave free. A video is refused if it might not leave them.',
  }),
};
