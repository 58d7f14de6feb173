import type { Case } from './option-case.ts';

/** Cases of the options of `[tunnel]`. */
export const TUNNEL_CASES = {
  'tunnel.providers': {
    toml: '["tollgate:local:acme", "8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm"]',
    wrong: '["Name"]',
    of: (c) => [c.tunnel.providers].flat().join(),
    is: 'tollgate:local:acme,8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm',
    text: 'tollgate:local:acme, 8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm',
    fallback: '',
  },
  'tunnel.shared_names': {
    toml: '["acme/a"]',
    wrong: '["a b"]',
    of: (c) => c.tunnel.sharedNames.join(),
    is: 'acme/a',
    fallback: '',
  },
  'tunnel.silence_ms': { toml: '2_000', wrong: '999', of: (c) => c.tunnel.silenceMs, is: 2_000, fallback: 15_000 },
  'tunnel.grace_ms': { toml: '0', wrong: '-1', of: (c) => c.tunnel.graceMs, is: 0, fallback: 30_000 },
  'tunnel.wait_ms': { toml: '0', wrong: '60_001', of: (c) => c.tunnel.waitMs, is: 0, fallback: 3_000 },
  'tunnel.services_max': { toml: '7', wrong: '0', of: (c) => c.tunnel.servicesMax, is: 7, fallback: 1_000 },
  'tunnel.price_notice_ms': {
    toml: '0',
    wrong: '86_400_001',
    of: (c) => c.tunnel.priceNoticeMs,
    is: 0,
    fallback: 600_000,
  },
  'tunnel.connections_per_address_max': {
    toml: '3',
    wrong: '0',
    of: (c) => c.tunnel.connectionsPerAddressMax,
    is: 3,
    fallback: 1_000,
  },
} as const satisfies Record<string, Case>;
