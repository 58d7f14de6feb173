import { resolve } from 'node:path';
import bs58 from 'bs58';
import { parseEvmAddress } from './evm-address.ts';
import {
  type CamelKeys,
  option,
  optionalText,
  optionalWhole,
  text,
  trueOrFalse,
  urlFault,
  whole,
  type ValuesOf,
  usd,
  camelKeys,
} from './option.ts';
import { keypairFileOption, privateKeyOption, keyFamily } from './key-options.ts';
import { show, WrongValue } from './problem.ts';
import { complain, isTable, type ConfigReading, readTable, valuesOf } from './reading.ts';

const CAIP2 = /^(?:eip155:[1-9]\d{0,14}|solana:[1-9A-HJ-NP-Za-km-z]{32})$/;
const MOVE_TO_MAX = 20;
const USD_MAX = 1_000_000_000_000n;

/**
 * Returns the fault of a token's address in either chain family. null for a valid address. Whether the family fits the
 * network is checked elsewhere.
 */
function assetFault(value: string): string | null {
  if (value.startsWith('0x'))
    return parseEvmAddress(value) === null
      ? 'is not an EVM address in lower case or with its checksum: a digit is wrong'
      : null;
  return value.length <= 44 && bs58.decodeUnsafe(value)?.length === 32 ? null : 'is not the address of a token';
}

/** Checks the name and the version in the token's EIP-712 domain, which wallets show. */
const domainTextFault = (value: string) =>
  /^[ -~]{1,64}$/.test(value) ? null : 'is not 1 to 64 printable ASCII characters';

function facilitatorFault(value: string): string | null {
  if (value === 'in-process') return null;
  const fault = urlFault(value, ['http:', 'https:']);
  if (fault !== null) return fault;
  const { username, password, search, hash } = new URL(value);
  return username || password || search || hash ? 'has a user, a query or a fragment' : null;
}

/** The keys of a `[[chains]]` block. All except `network` and `rpc_url` are for payments. */
export const CHAIN_OPTIONS = {
  network: option({
    takes: 'a CAIP-2 id such as `eip155:8453`',
    meaning: 'The chain.',
    read: (value) => {
      if (typeof value === 'string' && CAIP2.test(value)) return value;
      throw new WrongValue(`is ${show(value)}`, 'the CAIP-2 id of an EVM chain or of Solana, such as eip155:8453');
    },
  }),
  rpc_url: option({
    takes: 'an http:// or https:// URL',
    secret: true,
    meaning:
      'JSON-RPC address of a node of that chain. The gateway uses it to check the signatures of contract wallets, and to see and move money.',
    read: (value) => {
      const right = 'an http:// or https:// URL, or "std::env::NAME"';
      if (typeof value !== 'string') throw new WrongValue('is not text', right);
      const fault = urlFault(value, ['http:', 'https:']);
      if (fault !== null) throw new WrongValue(fault, right);
      return value;
    },
  }),
  private_key: privateKeyOption(
    'Secret key of the treasury. With it, or with `keypair_file`, the gateway takes payments and pays out over this chain.',
  ),
  keypair_file: keypairFileOption('Keypair file of the treasury, as the command `keygen` writes it.'),
  previous_private_key: privateKeyOption(
    'Secret key of the previous treasury, while it is replaced: its money is moved to the new treasury, and payments that still reach it are credited.',
  ),
  previous_keypair_file: keypairFileOption('Keypair file of the previous treasury.'),
  asset: optionalText({
    absent: "the network's USDC, on Base, Base Sepolia, Solana and Solana devnet",
    takes: 'address of a token with 6 decimals',
    meaning: 'Token for payments: USDC. On EVM chains it must support EIP-3009.',
    fault: assetFault,
  }),
  asset_name: optionalText({
    absent: 'that of the known USDC',
    takes: 'text of 1 to 64 printable ASCII characters',
    meaning: 'Name in the EIP-712 domain of `asset`. Only for EVM chains. Required if you set `asset`.',
    fault: domainTextFault,
  }),
  asset_version: optionalText({
    absent: 'that of the known USDC',
    takes: 'text of 1 to 64 printable ASCII characters',
    meaning: 'Version in the same domain.',
    fault: domainTextFault,
  }),
  facilitator: text({
    default: 'in-process',
    takes: '`in-process`, or the http:// or https:// URL of an x402 facilitator',
    meaning:
      'Who submits payments: the gateway itself, which then pays for gas, or a facilitator. The gateway always checks on the chain whether a payment was settled.',
    fault: facilitatorFault,
  }),
  min_topup: usd({
    min: 1n,
    max: USD_MAX,
    default: 100_000n,
    meaning: 'Smallest payment that the payment terms ask for. The part that the call does not cost stays as balance.',
  }),
  topup_max: usd({ min: 1n, max: USD_MAX, default: 1_000_000_000n, meaning: 'Largest payment.' }),
  unfinal_max: usd({
    min: 0n,
    max: USD_MAX,
    default: 1_000_000_000n,
    meaning:
      'Limit on the sum of credited payments that are not final yet. The operator loses at most this sum if the chain undoes them. Payments above it are credited when they are final.',
  }),
  confirmations: whole({
    min: 1,
    max: 10_000,
    default: 1,
    meaning: 'Number of blocks after which a payment is credited. The block of the payment counts.',
  }),
  finality: optionalWhole({
    min: 1,
    max: 100_000,
    absent: 'what the node calls finalized',
    meaning: 'Number of blocks after which a payment is final, for EVM nodes that do not report finality.',
  }),
  opens_accounts: trueOrFalse({
    optional: { text: 'false', fallback: false },
    meaning:
      'Solana: whether a payout makes the token account of a receiver that has none. The treasury pays for it. The owner can close the account and keep its rent. So set `token_account_fee` above the rent, or use this only with providers that you know.',
  }),
  withdrawal_min: usd({ min: 1n, max: USD_MAX, default: 1_000_000n, meaning: 'Smallest withdrawal.' }),
  withdrawal_fee: usd({
    min: 0n,
    max: 1_000_000_000n,
    default: 0n,
    meaning:
      'Fee that is kept from each withdrawal, for your costs on the chain: the address gets the rest. It is booked to the fees.',
  }),
  token_account_fee: usd({
    min: 0n,
    max: 1_000_000_000n,
    default: 0n,
    meaning:
      'Solana, with `opens_accounts`: a second fee, besides `withdrawal_fee`, for each withdrawal whose payout makes a token account. If a withdrawal is not larger than both fees, its amount is given back.',
  }),
  withdrawal_daily_max: usd({
    min: 1n,
    max: USD_MAX,
    default: 10_000_000_000n,
    meaning: 'Largest sum of payouts in 24 hours from one balance, or from one provider’s earnings, over all chains.',
  }),
  move_to: option<readonly string[]>({
    takes: 'list of at most 20 addresses on this chain',
    meaning:
      'Addresses that belong to you and to which `tollgate treasury move` may send money of the treasury, on its way to another treasury. Only this file can add one.',
    optional: { text: 'none', fallback: [] },
    read: (value) => {
      const right = 'a list of at most 20 addresses on this chain, such as ["0x…"]';
      if (!Array.isArray(value) || value.length > MOVE_TO_MAX) throw new WrongValue(`is ${show(value)}`, right);
      for (const one of value as readonly unknown[]) {
        const fault = typeof one === 'string' ? assetFault(one) : 'is not text';
        if (fault !== null) throw new WrongValue(`has ${show(one)}, which is no address`, right);
      }
      return value as readonly string[];
    },
  }),
  timeout_ms: whole({
    min: 100,
    max: 120_000,
    default: 10_000,
    meaning: 'Longest wait for one answer of the node or the facilitator.',
  }),
};

type ChainValues = CamelKeys<ValuesOf<typeof CHAIN_OPTIONS>>;

export interface ChainConfig {
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: string;
  readonly rpcUrl: string;
  /** null: no payments over this chain. It is used only to verify contract wallets. */
  readonly payments: ChainPaymentsConfig | null;
}

/** The terms of deposits and withdrawals over one chain. */
export interface ChainPaymentsConfig extends Omit<
  ChainValues,
  'network' | 'rpcUrl' | 'privateKey' | 'keypairFile' | 'previousPrivateKey' | 'previousKeypairFile' | 'asset'
> {
  readonly treasury: KeyPlace;
  /** The key of the previous treasury, while it hands over to this one. null without one. */
  readonly previous: KeyPlace | null;
  readonly asset: string;
}

/** The path of a treasury's key, or the key itself, which is secret. */
export type KeyPlace = { readonly keypairFile: string } | { readonly privateKey: string };

const CHAINS_MAX = 100;

/** Keys that apply to every chain. All other keys are for payments. */
const ALWAYS: readonly string[] = ['network', 'rpc_url'];

type Asset = Pick<ChainPaymentsConfig, 'asset' | 'assetName' | 'assetVersion'>;

/** Circle's USDC by network, with its EIP-712 domain. */
const USDC: Readonly<Record<string, Asset>> = {
  'eip155:8453': { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', assetName: 'USD Coin', assetVersion: '2' },
  'eip155:84532': { asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', assetName: 'USDC', assetVersion: '2' },
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': {
    asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    assetName: null,
    assetVersion: null,
  },
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1': {
    asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
    assetName: null,
    assetVersion: null,
  },
};

/** All valid `[[chains]]` blocks, in their order. Relative paths in them start at `directory`. */
export function readChains(value: unknown, directory: string, reading: ConfigReading): readonly ChainConfig[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > CHAINS_MAX) {
    const wrong = Array.isArray(value) ? `has ${value.length} blocks` : `is ${show(value)}`;
    complain(reading, 'chains', wrong, `one [[chains]] block for each chain, at most ${CHAINS_MAX}`);
    return [];
  }
  const chains: ChainConfig[] = [];
  for (const [index, block] of (value as readonly unknown[]).entries()) {
    const path = `chains[${index}]`;
    if (!isTable(block)) {
      complain(reading, path, `is ${show(block)}`, 'a [[chains]] block');
      continue;
    }
    const read = valuesOf(readTable(block, path, CHAIN_OPTIONS, reading), CHAIN_OPTIONS);
    if (!read) continue;
    const values = camelKeys(read);
    const { network, rpcUrl } = values;
    if (chains.some((chain) => chain.network === network))
      complain(reading, `${path}.network`, `${show(network)} is there twice`, 'one block for each chain');
    else
      chains.push({
        network,
        rpcUrl,
        payments: reading.placeOnly ? null : readPayments(values, Object.keys(block), path, directory, reading),
      });
  }
  return chains;
}

type Family = 'eip155' | 'solana';
type Wrong = (key: string, what: string, right: string) => void;

/** The payments of a chain. null if the chain has no treasury or has problems. */
function readPayments(
  values: ChainValues,
  written: readonly string[],
  path: string,
  directory: string,
  reading: ConfigReading,
): ChainPaymentsConfig | null {
  const {
    network,
    rpcUrl: _rpcUrl,
    privateKey,
    keypairFile,
    previousPrivateKey,
    previousKeypairFile,
    ...terms
  } = values;
  const before = reading.problems.length;
  const wrong: Wrong = (key, what, right) => complain(reading, `${path}.${key}`, what, right);
  if (privateKey === null && keypairFile === null) {
    const needless = written.find((key) => Object.hasOwn(CHAIN_OPTIONS, key) && !ALWAYS.includes(key));
    if (needless !== undefined)
      wrong(
        needless,
        'is for payments, and this chain has no treasury',
        'private_key or keypair_file with the key of the treasury, or this key left out',
      );
    return null;
  }
  if (privateKey !== null && keypairFile !== null) wrong('private_key', 'stands beside keypair_file', 'one of the two');
  if (previousPrivateKey !== null && previousKeypairFile !== null)
    wrong('previous_private_key', 'stands beside previous_keypair_file', 'one of the two');
  const family = network.startsWith('eip155:') ? 'eip155' : 'solana';
  if (privateKey !== null) checkFamily('private_key', privateKey, family, network, wrong);
  if (previousPrivateKey !== null) checkFamily('previous_private_key', previousPrivateKey, family, network, wrong);
  if (family === 'solana') {
    const { assetName: asset_name, assetVersion: asset_version, finality } = terms;
    for (const [key, value] of Object.entries({ asset_name, asset_version, finality }))
      if (value !== null) wrong(key, 'is for EVM chains', `leave it out on ${network}`);
  }
  if (terms.tokenAccountFee > 0n) {
    if (family !== 'solana') wrong('token_account_fee', 'is for Solana', `leave it out on ${network}`);
    else if (!terms.opensAccounts)
      wrong(
        'token_account_fee',
        'is for payouts that make a token account, and here none does',
        'opens_accounts = true beside it, or this key left out',
      );
  }
  for (const address of terms.moveTo)
    if (address.startsWith('0x') !== (family === 'eip155'))
      wrong('move_to', `has ${show(address)}, which is not an address on ${network}`, 'addresses on this chain');
  if (terms.minTopup > terms.topupMax) wrong('min_topup', 'is more than topup_max', 'less than topup_max, or as much');
  if (terms.withdrawalFee >= terms.withdrawalMin)
    wrong('withdrawal_fee', 'is not less than withdrawal_min', 'less than withdrawal_min');
  if (terms.withdrawalMin > terms.withdrawalDailyMax)
    wrong('withdrawal_min', 'is more than withdrawal_daily_max', 'less than withdrawal_daily_max, or as much');
  const asset = assetOf(values, family, wrong);
  if (asset === null || reading.problems.length > before) return null;
  const placeOf = (key: string | null, file: string | null) =>
    file !== null ? { keypairFile: resolve(directory, file) } : key !== null ? { privateKey: key } : null;
  return {
    ...terms,
    ...asset,
    treasury: placeOf(privateKey, keypairFile)!,
    previous: placeOf(previousPrivateKey, previousKeypairFile),
  };
}

/** Complains about a key that does not belong to the chain's family. */
function checkFamily(option: string, privateKey: string, family: Family, network: string, wrong: Wrong): void {
  const actualFamily = keyFamily(privateKey);
  if (actualFamily === family) return;
  wrong(
    option,
    actualFamily === null
      ? 'is not a key of a wallet'
      : `is a key of ${actualFamily === 'eip155' ? 'an EVM' : 'a Solana'} wallet, and ${network} is of another family`,
    family === 'eip155'
      ? '32 bytes in hex, as tollgate keygen --chain evm writes them'
      : 'the 64 bytes of a Solana key pair in base58',
  );
}

/**
 * The token with its EIP-712 domain, from the block or from the network's known USDC. null if the token is unknown or
 * invalid.
 */
function assetOf(
  { network, asset, assetName: name, assetVersion: version }: ChainValues,
  family: Family,
  wrong: Wrong,
): Asset | null {
  const known = USDC[network];
  if (asset === null && known === undefined) {
    wrong(
      'asset',
      `is missing, and the USDC of ${network} is not known`,
      `the address of USDC there; it is known on ${Object.keys(USDC).join(', ')}`,
    );
    return null;
  }
  if (asset !== null && asset.startsWith('0x') !== (family === 'eip155')) {
    const right =
      family === 'eip155' ? 'the address of a contract: 0x and 40 hex digits' : 'the mint of the token in base58';
    wrong('asset', `is ${show(asset)}, which is not an address on ${network}`, right);
    return null;
  }
  const own =
    known !== undefined && (asset === null || asset.toLowerCase() === known.asset.toLowerCase()) ? known : null;
  if (family === 'solana') return { asset: asset ?? known!.asset, assetName: null, assetVersion: null };
  const assetName = name ?? own?.assetName ?? null;
  const assetVersion = version ?? own?.assetVersion ?? null;
  const right = 'what the token signs with in its EIP-712 domain, as its contract or its issuer says';
  if (assetName === null) wrong('asset_name', 'is missing', right);
  if (assetVersion === null) wrong('asset_version', 'is missing', right);
  return { asset: asset ?? known!.asset, assetName, assetVersion };
}
