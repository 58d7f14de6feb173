import bs58 from 'bs58';
import { parseEvmAddress } from '../evm-address.ts';
import { serviceNameFault } from '../names.ts';
import { commaSeparated, option, textList, whole, HOUR_MS, MINUTE_MS, optionalText, urlFault } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import { listenHost } from './server.ts';

/* Who may connect: providers that dial in, and the other gateways of the database. */

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';
/** Ids of a provider. The name of a provider is not one of them, so it would admit nobody. */
const PROVIDER = new RegExp(
  [
    // A public key, or the account of a Solana wallet, with or without its network.
    `(?:solana:(?:${BASE58}{32}:)?)?${BASE58}{32,44}`,
    // The same of an EVM wallet.
    String.raw`(?:eip155:(?:\d{1,32}:)?)?0x[0-9a-fA-F]{40}`,
    // Accounts without a wallet.
    'tollgate:local:[a-z0-9-]{1,64}',
    'oauth:[-_a-z0-9]{1,32}:[-.%a-zA-Z0-9]{1,64}',
  ]
    .map((form) => `^${form}$`)
    .join('|'),
);

/**
 * The providers that may connect: everybody, nobody, or those of a list of public keys and account ids, which has at
 * least one. null: the operator has not said, so nobody may.
 */
export type AdmittedProviders = 'anyone' | 'nobody' | readonly string[] | null;

/** Examples for errors. */
const FORMS = 'such as 8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm, eip155:8453:0x… or tollgate:local:acme';
const SHOWN = 5;

const TAKES = '`"anyone"`, `"nobody"`, or a list of public keys or account ids';
const PROVIDERS_MAX = 10_000;

/** The fault of an entry of the list; null for a public key or an account id. */
function faultOf(entry: unknown): string | null {
  if (typeof entry !== 'string' || !PROVIDER.test(entry)) return 'is not a public key or an account id';
  const last = entry.slice(entry.lastIndexOf(':') + 1);
  if (entry.startsWith('tollgate:') || entry.startsWith('oauth:')) return null;
  if (last.startsWith('0x'))
    return parseEvmAddress(last) === null
      ? 'has a wrong checksum: copy the address again, or write it in small letters'
      : null;
  return bs58.decodeUnsafe(last)?.length === KEY_BYTES ? null : 'is no key of Solana: copy it again';
}

const KEY_BYTES = 32;

function readProviders(value: unknown): AdmittedProviders {
  if (value === 'anyone' || value === 'nobody') return value;
  if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, TAKES.replaceAll('`', ''));
  if (value.length > PROVIDERS_MAX) throw new WrongValue(`has ${value.length} entries`, `at most ${PROVIDERS_MAX}`);
  const faults = (value as readonly unknown[]).flatMap((one) => {
    const fault = faultOf(one);
    return fault === null ? [] : [`${show(one)}, which ${fault}`];
  });
  if (faults.length > 0) {
    const more = faults.length > SHOWN ? `; and ${faults.length - SHOWN} more` : '';
    throw new WrongValue(`has ${faults.slice(0, SHOWN).join('; ')}${more}`, `public keys or account ids, ${FORMS}`);
  }
  return value.length === 0 ? 'nobody' : [...new Set(value as string[])];
}

export const TUNNEL = {
  providers: option<AdmittedProviders>({
    env: 'TOLLGATE_PROVIDERS',
    takes: TAKES,
    optional: { text: '`"nobody"`; `"anyone"` for a development gateway on loopback', fallback: null },
    meaning:
      'Who may connect as a provider and sell through this gateway. An empty list is `"nobody"`. In the environment the entries of a list are separated by commas.',
    read: readProviders,
    fromText: (text) => (text === 'anyone' || text === 'nobody' ? text : commaSeparated(text)),
  }),
  shared_names: textList({
    takes: 'list of names of services, and of beginnings such as `openai/*`',
    meaning:
      "Names of this file's services under which connected providers may sell too, so that calls are shared between them and you; and beginnings such as `acme/*` that belong to nobody: each provider may name services with them. Otherwise the first part of a name is the file's, or that of the provider that had it first.",
    fault: (name) => serviceNameFault(name.endsWith('/*') ? name.slice(0, -2) : name),
    max: 10_000,
  }),
  silence_ms: whole({
    min: 1_000,
    max: HOUR_MS,
    default: 15_000,
    meaning: "How long a provider's proxy may send nothing before it counts as gone.",
  }),
  grace_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning:
      'How long the services of a provider that disconnected stay listed. During this time, other providers are preferred.',
  }),
  wait_ms: whole({
    min: 0,
    max: MINUTE_MS,
    default: 3_000,
    meaning: 'How long a call that no other provider can serve waits for its provider to connect again.',
  }),
  services_max: whole({ min: 1, max: 10_000, default: 1_000, meaning: 'Largest number of services of one provider.' }),
  strangers_services_max: whole({
    min: 1,
    max: 1_000_000,
    default: 20_000,
    meaning:
      'With `providers = "anyone"`: largest number of services that all providers list together through one gateway. A network has at most as many as it leaves free.',
  }),
  price_notice_ms: whole({
    min: 0,
    max: 24 * HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning:
      'After a provider more than doubles a price, calls must accept the new price with `max_cost` or `max_price` for this time. With 0, they never need to.',
  }),
  connections_per_address_max: whole({
    min: 1,
    max: 10_000,
    default: 1_000,
    meaning:
      'Largest number of proxies from one IPv4 address or IPv6 /64 network, so that one client cannot use up all connections.',
  }),
};

export const CLUSTER = {
  url: optionalText({
    env: 'TOLLGATE_CLUSTER_URL',
    absent: 'no other gateway',
    takes: 'https://host:port',
    meaning:
      'Address under which the other gateways of the same database reach `cluster.host` and `cluster.port` of this one.',
    fault: (value) => urlFault(value, ['https:']) ?? peerFault(new URL(value)),
    normal: (value) => value.replace(/\/$/, ''),
  }),
  host: listenHost({
    env: 'TOLLGATE_CLUSTER_HOST',
    meaning: 'Address to listen on for other gateways. Only gateways that know the secret can connect.',
  }),
  port: whole({
    env: 'TOLLGATE_CLUSTER_PORT',
    min: 0,
    max: 65_535,
    default: 8403,
    meaning: 'Port to listen on for other gateways. 0 takes a free one.',
  }),
  secret: optionalText({
    env: 'TOLLGATE_CLUSTER_SECRET',
    secret: true,
    absent: 'derived from the identity seed',
    takes: 'text of 32 to 512 printable ASCII characters without spaces',
    meaning: 'Secret with which the gateways of one database authenticate to each other.',
    fault: (value) => (/^[!-~]{32,512}$/.test(value) ? null : 'is too short, too long, or contains spaces'),
  }),
};

/** Other gateways use only the host and the port of the address. */
function peerFault({ username, password, pathname, search, hash, hostname }: URL): string | null {
  if (username !== '' || password !== '') return 'has a user or a password, which other gateways do not send';
  if (pathname !== '/' || search !== '' || hash !== '') return 'has more than a host and a port';
  if (hostname === '0.0.0.0' || hostname === '[::]')
    return 'names all addresses of a machine, and other gateways need one of them';
  return null;
}
