import type { Case } from './option-case.ts';

/** The cases of `[media]`. */
export const MEDIA_CASES = {
  'media.video_ttl_ms': { toml: '5000', wrong: '10', of: (c) => c.media.videoTtlMs, is: 5000, fallback: 7200000 },
  'media.keep_ms': { toml: '5000', wrong: '10', of: (c) => c.media.keepMs, is: 5000, fallback: 86400000 },
  'media.download_timeout_ms': {
    toml: '5000',
    wrong: '10',
    of: (c) => c.media.downloadTimeoutMs,
    is: 5000,
    fallback: 900000,
  },
  'media.file_bytes_max': {
    toml: '4096',
    wrong: '1',
    of: (c) => c.media.fileBytesMax,
    is: 4096,
    fallback: 256 * 1024 * 1024,
  },
  'media.account_bytes_max': {
    beside: 'file_bytes_max = 4096\n',
    toml: '4096',
    wrong: '1',
    of: (c) => c.media.accountBytesMax,
    is: 4096,
    fallback: 4 * 1024 ** 3,
  },
  'media.bytes_max': {
    beside: 'file_bytes_max = 4096\n',
    toml: '4096',
    wrong: '1',
    of: (c) => c.media.bytesMax,
    is: 4096,
    fallback: 20 * 1024 ** 3,
  },
  'media.free_bytes_min': { toml: '4096', wrong: '-1', of: (c) => c.media.freeBytesMin, is: 4096, fallback: 1024 ** 3 },
  'media.s3_url': {
    toml: '"https://s3.example/films/gate/"',
    wrong: '"https://s3.example"',
    beside: 's3_access_key_id = "AKIA"\ns3_secret_access_key = "secret"\n',
    of: (c) => c.media.s3Url,
    is: 'https://s3.example/films/gate',
    fallback: null,
  },
  'media.s3_region': { toml: '"eu-1"', wrong: '"a b"', of: (c) => c.media.s3Region, is: 'eu-1', fallback: 'us-east-1' },
  'media.s3_access_key_id': {
    toml: '"AKIA"',
    wrong: '"a b"',
    of: (c) => c.media.s3AccessKeyId,
    is: 'AKIA',
    fallback: null,
  },
  'media.s3_secret_access_key': {
    toml: '"secret"',
    wrong: '"a b"',
    of: (c) => c.media.s3SecretAccessKey,
    is: 'secret',
    fallback: null,
  },
} as const satisfies Record<string, Case>;
