import { whole } from '../option.ts';
import { HOUR_MS, KIB, MIB } from '../units.ts';

const GIB = 1024 * MIB;

/** `[responses]`: kept responses of the Responses API. */
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
      'Most responses of one account that are made with `background: true` at the same time. A further one is refused until one has ended.',
  }),
};
