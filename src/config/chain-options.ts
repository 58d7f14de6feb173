import bs58 from 'bs58';
import { parseEvmAddress } from '#wire';
import type { CamelKeys } from './camel-keys.ts';
import { keypairFileOption, privateKeyOption } from './key-options.ts';
import { option, optionalText, optionalWhole, text, trueOrFalse, urlFault, whole, type ValuesOf } from './option.ts';
import { show, WrongValue } from './problem.ts';
import { usd } from './usd.ts';

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

/** The values of a block, with keys in camel case. */
export type ChainValues = CamelKeys<ValuesOf<typeof CHAIN_OPTIONS>>;
