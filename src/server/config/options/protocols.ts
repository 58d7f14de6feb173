import {
  trueOrFalse,
  whole,
  HOUR_MS,
  MINUTE_MS,
  optionalText,
  optionalWhole,
  text,
  urlFault,
  KIB,
  MIB,
} from '../option.ts';

/* Sections of single protocols, and of work that outlives its call: sessions, tasks, files, kept responses. */

export const MCP = {
  sessions_max: whole({
    min: 1,
    max: 100_000,
    default: 100,
    meaning:
      'Largest number of sessions of one account. A further one ends the session that was unused for the longest time. Its restricted keys share twice as many.',
  }),
  sessions_in_memory_max: whole({
    min: 1,
    max: 1_000_000,
    default: 20_000,
    meaning:
      'Largest number of sessions that one gateway keeps in memory. Others stay in the database until they are used again.',
  }),
  session_idle_ms: whole({
    min: 10_000,
    max: 24 * HOUR_MS,
    default: 30 * MINUTE_MS,
    meaning: 'A session ends after this time without use.',
  }),
};

export const TASKS = {
  ttl_ms: whole({
    min: 1_000,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning:
      'How long a task may run after its last message, or after the tool call that began it. After that, the gateway ends the task. It is free, unless an agent has given output, which is charged.',
  }),
  retention_ms: whole({
    min: 1_000,
    max: 365 * 24 * HOUR_MS,
    default: 7 * 24 * HOUR_MS,
    meaning: 'How long a task can be read after its end.',
  }),
  live_max: whole({
    min: 1,
    max: 1_000_000,
    default: 1_000,
    meaning:
      'Largest number of running tasks of one account. A further task is refused until one has ended. Its restricted keys share twice as many.',
  }),
  look_ms_max: whole({
    min: 1_000,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'Longest time between two checks of a task whose provider does not report on it.',
  }),
};

export const WEBHOOKS = {
  allow_private: trueOrFalse({
    optional: { text: '`false`; `true` in development', fallback: false, inDevelopment: true },
    meaning:
      'Whether webhooks of clients, and the pictures and files that they name, may be at http:// addresses, on this machine and in its networks. Otherwise only https:// addresses on the public internet are accepted.',
  }),
};

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

export const RESPONSES = {
  keep_ms: whole({
    min: 0,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning:
      'How long a response of `/responses` is kept after its last use, if the request does not say `store: false`. 0: none is kept, and requests that need a kept one are refused.',
  }),
  account_bytes_max: whole({
    min: 64 * KIB,
    max: 1024 * GIB,
    default: 64 * MIB,
    meaning:
      'Largest size of all kept responses of one account, in bytes. If it is exceeded, those that were not used for longest are deleted. If all accounts together exceed `bytes_max`, those that keep most keep less.',
  }),
  account_count_max: whole({
    min: 1,
    max: 1_000_000,
    default: 10_000,
    meaning: 'Most kept responses of one account. Beyond it, those that were not used for longest are deleted.',
  }),
  bytes_max: whole({
    min: 64 * KIB,
    max: 1024 * GIB,
    default: 4 * GIB,
    meaning:
      'Largest size of the kept responses of all accounts, in bytes. If it is exceeded, those of the accounts that keep most are deleted first, down to an equal share for each.',
  }),
  background_count_max: whole({
    min: 1,
    max: 1_000_000,
    default: 100,
    meaning:
      'Most responses of one account that are made with `background: true` at the same time. A further one is refused until one has ended. Its restricted keys share twice as many.',
  }),
};

export const BATCHES = {
  keep_ms: whole({
    min: HOUR_MS,
    max: 365 * 24 * HOUR_MS,
    default: 30 * 24 * HOUR_MS,
    meaning:
      'How long an uploaded file, the results of a batch and the batch itself are kept. A client can ask for less with `expires_after`.',
  }),
  file_bytes_max: whole({
    min: KIB,
    max: GIB - 1,
    default: 100 * MIB,
    meaning: 'Largest file that can be uploaded.',
  }),
  account_bytes_max: whole({
    min: KIB,
    max: 1024 * TIB,
    default: GIB,
    meaning:
      'Largest size of all files of one account, compressed as they are stored, and of its batches with their metadata and errors. A further upload or batch is refused, and a batch begins no other line when its results have this size. Its restricted keys share twice as much.',
  }),
  account_count_max: whole({
    min: 1,
    max: 1_000_000,
    default: 1_000,
    meaning:
      'Most files of one account. A further upload or batch is refused until one is deleted. Its restricted keys share twice as many.',
  }),
  bytes_max: whole({
    min: KIB,
    max: 1024 * TIB,
    default: 20 * GIB,
    meaning:
      'Largest size of the files of all accounts. An account gets at most as much as is left for others. They are in the database.',
  }),
  free_bytes_max: optionalWhole({
    min: 0,
    max: 1024 * TIB,
    absent: 'a quarter of `bytes_max`',
    meaning:
      'Largest size of the files of all accounts together that never had 0.10 USD. Raise it to `bytes_max` if your own services are free.',
  }),
  lines_max: whole({ min: 1, max: 1_000_000, default: 50_000, meaning: 'Most lines of a batch.' }),
  live_max: whole({
    min: 1,
    max: 100_000,
    default: 50,
    meaning:
      'Most batches of one account that are under way. A further one is refused until one has ended. Its restricted keys share twice as many.',
  }),
  lines_at_once: whole({
    min: 1,
    max: 10_000,
    default: 16,
    meaning:
      'Most lines that one gateway calls at the same time. Few, so that calls whose clients wait find the gateway and the providers free. A line that takes longer than a minute does not count; at most four times as many such lines are called besides.',
  }),
  account_lines_at_once: whole({
    min: 1,
    max: 10_000,
    default: 8,
    meaning:
      'Most of them for one account. It gets another one only while at least as many are free as it then has, so it has fewer while others have some, and never more than half. Accounts whose batches cost nothing get together what one account gets.',
  }),
  provider_bytes_max: whole({
    min: KIB,
    max: TIB,
    default: 512 * MIB,
    meaning:
      'Largest size of the requests that one provider has in batches at the same time. An account gets at most as much as it leaves free, so half of it alone; more waits. A provider that had no room is sent less for a day.',
  }),
  provider_look_ms: whole({
    min: 10,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'Pause between two looks at a batch that a provider works on (`params.batches` of a model).',
  }),
};
