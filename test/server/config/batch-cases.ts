import type { Case } from './option-case.ts';

/** Options of `[batches]`. */
export const BATCH_CASES = {
  'batches.keep_ms': {
    toml: '3_600_000',
    wrong: '3_599_999',
    of: (c) => c.batches.keepMs,
    is: 3_600_000,
    fallback: 30 * 86_400_000,
  },
  'batches.file_bytes_max': {
    toml: '1_024',
    wrong: '1_023',
    of: (c) => c.batches.fileBytesMax,
    is: 1_024,
    fallback: 100 * 1024 ** 2,
  },
  'batches.account_bytes_max': {
    toml: '1_024',
    wrong: '1_023',
    of: (c) => c.batches.accountBytesMax,
    is: 1_024,
    fallback: 1024 ** 3,
  },
  'batches.account_count_max': { toml: '1', wrong: '0', of: (c) => c.batches.accountCountMax, is: 1, fallback: 1_000 },
  'batches.bytes_max': {
    toml: '1_024',
    wrong: '1_023',
    of: (c) => c.batches.bytesMax,
    is: 1_024,
    fallback: 20 * 1024 ** 3,
  },
  'batches.free_bytes_max': {
    toml: '0',
    wrong: '-1',
    of: (c) => c.batches.freeBytesMax,
    is: 0,
    fallback: null,
  },
  'batches.lines_max': { toml: '1', wrong: '0', of: (c) => c.batches.linesMax, is: 1, fallback: 50_000 },
  'batches.live_max': { toml: '1', wrong: '0', of: (c) => c.batches.liveMax, is: 1, fallback: 50 },
  'batches.lines_at_once': { toml: '1', wrong: '0', of: (c) => c.batches.linesAtOnce, is: 1, fallback: 16 },
  'batches.account_lines_at_once': {
    toml: '1',
    wrong: '0',
    of: (c) => c.batches.accountLinesAtOnce,
    is: 1,
    fallback: 8,
  },
  'batches.provider_bytes_max': {
    toml: '1024',
    wrong: '1023',
    of: (c) => c.batches.providerBytesMax,
    is: 1_024,
    fallback: 512 * 1024 * 1024,
  },
  'batches.provider_look_ms': {
    toml: '10',
    wrong: '9',
    of: (c) => c.batches.providerLookMs,
    is: 10,
    fallback: 30_000,
  },
} as const satisfies Readonly<Record<string, Case>>;
