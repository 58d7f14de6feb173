import { isIP } from 'node:net';
import { hostNameFault, originFault } from '../names.ts';
import { choice, optionalText, text, textList, urlFault, whole, openToStrangers } from '../option.ts';

const SEED = /^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43})$/;

function networkIsValid(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

const networkList = (options: { readonly env: string; readonly meaning: string }) =>
  textList({
    takes: 'list of IP addresses and networks in CIDR form',
    fault: (value) => (networkIsValid(value) ? null : 'is not an IP address or a network such as 10.0.0.0/8'),
    max: 100,
    ...options,
  });

export const listenHost = (options: { readonly env?: string; readonly meaning: string }) =>
  text({
    default: '127.0.0.1',
    takes: 'host name or IP address',
    fault: (value) => (/^[A-Za-z0-9.:%_-]{1,255}$/.test(value) ? null : 'is not a host name or an IP address'),
    ...options,
  });

const seedHex = (seed: string) =>
  seed.length === 64 ? seed.toLowerCase() : Buffer.from(seed, 'base64').toString('hex');

const pageUrl = (env: string, own: string, name: string) =>
  optionalText({
    env,
    absent: `${own} of this gateway`,
    takes: 'an http:// or https:// URL',
    meaning: `Address of the ${name}, if another site has it. ${own} redirects there, and \`/llms.txt\` names it.`,
    fault: (value) => urlFault(value, ['http:', 'https:']),
  });

export const SERVER = {
  host: listenHost({
    env: 'HOST',
    meaning: 'Address to listen on. With `0.0.0.0` or `::`, the network can reach the gateway.',
  }),
  port: whole({
    env: 'PORT',
    min: 0,
    max: 65_535,
    default: 8402,
    meaning: 'Port to listen on. 0 takes a free one.',
  }),
  data_dir: text({
    env: 'TOLLGATE_DATA',
    default: '.tollgate',
    takes: 'path of a directory',
    meaning:
      'Directory of the embedded database and the identity. It is created if it is missing. A relative path starts at the working directory.',
    fault: (value) => (value === '' ? 'is empty' : value.includes('\0') ? 'contains a NUL character' : null),
  }),
  log_level: choice({
    env: 'TOLLGATE_LOG_LEVEL',
    values: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    meaning: 'Lowest severity that is logged.',
  }),
  admin_key: optionalText({
    env: 'TOLLGATE_ADMIN_KEY',
    secret: true,
    absent: 'made at first start',
    takes: 'text of 32 to 512 printable ASCII characters without spaces',
    meaning: 'Secret of the admin API.',
    fault: (value) =>
      /^[!-~]{32,512}$/.test(value)
        ? null
        : 'is too short, too long, or contains characters that a header cannot carry',
  }),
  admin_networks: openToStrangers(
    networkList({
      env: 'TOLLGATE_ADMIN_NETWORKS',
      meaning:
        'Networks from which the admin key is accepted. If the list is empty, it is accepted from everywhere. List `127.0.0.1` and `::1` too if commands on this machine must reach the running gateway.',
    }),
  ),
  identity_seed: optionalText({
    env: 'TOLLGATE_IDENTITY_SEED',
    secret: true,
    absent: 'made at first start, in `data_dir`',
    takes: '32 bytes as 64 hex digits or as base64',
    meaning: 'Seed of the receipt-signing key and the provider ids. Gateways that share a database must share it.',
    fault: (value) => (SEED.test(value) ? null : 'is not 32 bytes in hex or base64'),
    normal: seedHex,
  }),
  second_identity_seed: optionalText({
    env: 'TOLLGATE_SECOND_IDENTITY_SEED',
    secret: true,
    absent: 'none',
    takes: '32 bytes as 64 hex digits or as base64',
    meaning:
      'A second seed, for the time of a change: first the next one, then the one before. Tokens and cookies that it makes are accepted. A database that belongs to it belongs to `identity_seed` from then on. See [Rotate secrets](run/rotate-secrets.md#the-identity-seed).',
    fault: (value) => (SEED.test(value) ? null : 'is not 32 bytes in hex or base64'),
    normal: seedHex,
  }),
  public_url: optionalText({
    env: 'TOLLGATE_PUBLIC_URL',
    absent: 'not known',
    takes: 'an http:// or https:// URL without a path',
    meaning:
      'Public address of this gateway. Wallets may sign in for its host, and pages, agent cards, payment terms and addresses of videos show it. Set it if clients use a public name: without it, only IP addresses, private names and the hosts of `sign_in.domains` and `server.allowed_hosts` are shown.',
    fault: (value) =>
      urlFault(value, ['http:', 'https:']) ??
      (URL.parse(value)!.origin === value.replace(/\/$/, '') ? null : 'has more than an origin'),
    normal: (value) => value.replace(/\/$/, ''),
  }),
  marketplace_url: pageUrl('TOLLGATE_MARKETPLACE_URL', '`/marketplace`', 'marketplace'),
  dashboard_url: pageUrl('TOLLGATE_DASHBOARD_URL', '`/dashboard`', 'dashboard of accounts'),
  trusted_proxies: networkList({
    env: 'TOLLGATE_TRUSTED_PROXIES',
    meaning:
      'Load balancers in front of this gateway. The address of a client is taken from their `X-Forwarded-For`. Failed sign-ins are counted by that address.',
  }),
  allowed_hosts: textList({
    env: 'TOLLGATE_ALLOWED_HOSTS',
    takes: 'list of host names and IP addresses without ports',
    meaning:
      'More host names under which MCP clients may reach this gateway, besides those of this machine, `server.host`, `server.public_url` and `sign_in.domains`.',
    fault: hostNameFault,
    max: 100,
  }),
  cors_origins: textList({
    env: 'TOLLGATE_CORS_ORIGINS',
    takes: 'list of origins, such as `https://app.example`, or `*` for every one',
    meaning:
      'Web pages whose scripts may call every endpoint of this gateway from a browser (CORS). Cookies are never allowed. `*` does not include MCP: list the pages that call MCP one by one.',
    fault: (value) => (value === '*' ? null : originFault(value)),
    max: 100,
  }),
  allowed_origins: textList({
    env: 'TOLLGATE_ALLOWED_ORIGINS',
    takes: 'list of origins, such as `https://app.example`, or `null`',
    meaning:
      "Web pages that may call MCP here, besides the gateway's own. A gateway that listens on loopback accepts all pages of this machine.",
    fault: originFault,
    max: 100,
  }),
};

export const DATABASE = {
  url: optionalText({
    env: 'DATABASE_URL',
    secret: true,
    absent: 'embedded database in `data_dir`',
    takes: 'a postgres:// URL',
    meaning: 'PostgreSQL database for the ledger.',
    fault: (value) => urlFault(value, ['postgres:', 'postgresql:']),
  }),
};

export const REDIS = {
  url: optionalText({
    env: 'REDIS_URL',
    secret: true,
    absent: 'counters are kept in the process',
    takes: 'a redis:// or rediss:// URL',
    meaning: 'Redis server through which gateways share rate counters.',
    fault: (value) => urlFault(value, ['redis:', 'rediss:']),
  }),
};
