import { optionalText, optionalWhole, text, urlFault, whole } from '../option.ts';
import { HOUR_MS, KIB, MIB, MINUTE_MS } from '../units.ts';

const GIB = 1024 * MIB;
const TIB = 1024 * GIB;

function keyFault(value: string): string | null {
  return /^[!-~]{1,128}$/.test(value) ? null : 'is too long, or contains spaces';
}

function bucketFault(value: string): string | null {
  const wrong = urlFault(value, ['https:', 'http:']);
  if (wrong !== null) return wrong;
  const { username, password, search, hash, pathname } = new URL(value);
  if (username !== '' || password !== '' || search !== '' || hash !== '') return 'has more than an address and a path';
  return /^(?:\/[A-Za-z0-9._-]{1,128}){1,16}\/?$/.test(pathname) ? null : 'has no bucket in its path';
}

/** `[media]`: videos, and the files of large results. */
export const MEDIA = {
  video_ttl_ms: whole({
    min: 1_000,
    max: 7 * 24 * HOUR_MS,
    default: 2 * HOUR_MS,
    meaning:
      'How long a video may take. After that, the task ends with the videos that are here. Without any, it is free.',
  }),
  keep_ms: whole({
    min: 1_000,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning:
      'How long a finished video can be fetched, and how long an answer of more than 1 MiB is kept for repeats of its request.',
  }),
  download_timeout_ms: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: 15 * MINUTE_MS,
    meaning: 'Longest download of a file from its provider. A download that fails is tried again.',
  }),
  download_bytes_per_second_min: whole({
    min: 0,
    max: GIB - 1,
    default: 16 * KIB,
    meaning:
      'A download that is slower for half a minute is ended, and tried again later. 0: no bound. The default takes 11 minutes for 10 MiB.',
  }),
  file_bytes_max: whole({ min: KIB, max: GIB - 1, default: 256 * MIB, meaning: 'Largest file that is kept.' }),
  account_bytes_max: whole({
    min: KIB,
    max: 1024 * TIB,
    default: 4 * GIB,
    meaning:
      'Largest size of all files of one account, in bytes. A video is refused if it might not fit. An account also holds at most as much as is left of `bytes_max` for others. At least `file_bytes_max`.',
  }),
  bytes_max: whole({
    min: KIB,
    max: 1024 * TIB - 1,
    default: 20 * GIB,
    meaning: 'Largest size of all files, in bytes. A video is refused if it might not fit. At least `file_bytes_max`.',
  }),
  free_services_bytes_max: optionalWhole({
    min: 0,
    max: 1024 * TIB - 1,
    absent: 'an eighth of `bytes_max`, at least `file_bytes_max`',
    meaning:
      'Largest size of all videos of free services, in bytes. A service counts as free if its video costs less than 0.0001 USD for each MiB that is reserved for it. Raise it to `bytes_max` if your own services are free.',
  }),
  free_bytes_min: whole({
    min: 0,
    max: 1024 * TIB - 1,
    default: GIB,
    meaning: 'Bytes that files must leave free on the disk. A video is refused if it might not leave them free.',
  }),
  s3_url: optionalText({
    env: 'TOLLGATE_S3_URL',
    absent: 'files are in `data_dir`',
    takes: 'https://host/bucket, optionally with a prefix after it',
    meaning:
      'Bucket for files, in a store that speaks S3. All gateways of one database must have the same. Use the prefix for nothing else: the gateway removes files there that its database does not know.',
    fault: bucketFault,
    normal: (value) => value.replace(/\/$/, ''),
  }),
  s3_region: text({
    takes: 'text such as `eu-central-1`',
    default: 'us-east-1',
    meaning: 'Region of the bucket.',
    fault: (value) => (/^[a-z0-9-]{1,64}$/.test(value) ? null : 'is not written like eu-central-1'),
  }),
  s3_access_key_id: optionalText({
    env: 'TOLLGATE_S3_ACCESS_KEY_ID',
    absent: 'none; needed with `s3_url`',
    takes: 'text of 1 to 128 printable ASCII characters without spaces',
    meaning: 'Access key with the rights to read, write, list and delete in the bucket.',
    fault: keyFault,
  }),
  s3_secret_access_key: optionalText({
    env: 'TOLLGATE_S3_SECRET_ACCESS_KEY',
    secret: true,
    absent: 'none; needed with `s3_url`',
    takes: 'text of 1 to 128 printable ASCII characters without spaces',
    meaning: 'Its secret.',
    fault: keyFault,
  }),
};
