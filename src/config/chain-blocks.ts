import { resolve } from 'node:path';
import { camelKeys } from './camel-keys.ts';
import { CHAIN_OPTIONS, type ChainValues } from './chain-options.ts';
import { keyFamily } from './key-options.ts';
import { show } from './problem.ts';
import { complain, isTable, type Reading } from './reading.ts';
import { readTable, valuesOf } from './table.ts';
import type { ChainConfig, ChainPaymentsConfig } from './config.ts';

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
export function readChains(value: unknown, directory: string, reading: Reading): readonly ChainConfig[] {
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
        payments: reading.placeOnly ? null : readPayments(values, Object.keys(block), { path, directory, reading }),
      });
  }
  return chains;
}

interface Place {
  readonly path: string;
  readonly directory: string;
  readonly reading: Reading;
}

type Family = 'eip155' | 'solana';
type Wrong = (key: string, what: string, right: string) => void;

/** The payments of a chain. null if the chain has no treasury or has problems. */
function readPayments(
  values: ChainValues,
  written: readonly string[],
  { path, directory, reading }: Place,
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
  const given = keyFamily(privateKey);
  if (given === family) return;
  wrong(
    option,
    given === null
      ? 'is not a key of a wallet'
      : `is a key of ${given === 'eip155' ? 'an EVM' : 'a Solana'} wallet, and ${network} is of another family`,
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
