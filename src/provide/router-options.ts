import { bearerKey, domainFault, option, readUrl, show, WrongValue } from '#gateway/wire';
import { parseChainId } from './wallet/chain-id.ts';
import { isKey } from './wallet/load-wallet.ts';
import { WalletError } from './wallet/wallet.ts';

const SECRET_MAX = 1_024;
const PATH_MAX = 4_096;
const API_PATH = '/api/v1';

const KEYPAIR_RIGHT = 'the path of the file that `tollgate keygen` wrote';

/** The keys of `[router]` and `[router.siwx]`: where the proxy dials in, and as whom. */
export const ROUTER_OPTIONS = {
  url: option({
    takes: 'an http:// or https:// URL',
    meaning: `Address of the router. A path \`${API_PATH}\` at its end, as clients have it, is understood.`,
    read: (value) => {
      const { origin, path } = readUrl(value, 'the address of the router, such as https://router.example.com', 'router.api_key');
      return `${origin}${path.endsWith(API_PATH) ? path.slice(0, -API_PATH.length) : path}`;
    },
  }),
  api_key: bearerKey("API key of the provider's account at the router. Where `[router.siwx]` is there too, the wallet is used."),
  'siwx.chain_id': option<string | null>({
    takes: 'CAIP-2 id of a chain, such as `eip155:8453` or `solana:mainnet`',
    meaning: "Chain of the provider's wallet.",
    optional: { text: 'required in `[router.siwx]`', fallback: null },
    read: (value) => {
      const right = 'a CAIP-2 id: eip155:<number>, such as eip155:8453, or solana:mainnet, solana:devnet, solana:testnet or solana:<genesis hash>';
      if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, right);
      try {
        return parseChainId(value).chainId;
      } catch (error) {
        if (!(error instanceof WalletError)) throw error;
        // The text is not repeated: it may be a key that was put into the wrong line.
        throw new WrongValue('is no chain that a wallet can sign in on', right);
      }
    },
  }),
  'siwx.keypair_file': option<string | null>({
    takes: 'path of a file that its owner alone can read',
    meaning:
      'Keypair file of the wallet, as `tollgate keygen` writes it. A relative path starts at the directory of the file. Give this or `private_key`.',
    optional: { text: 'none', fallback: null },
    read: (value) => {
      if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, KEYPAIR_RIGHT);
      if (isKey(value)) throw new WrongValue('is a key itself', `${KEYPAIR_RIGHT}; a key goes to private_key`);
      if (value === '' || value.length > PATH_MAX || value.includes('\0')) throw new WrongValue('is no path', KEYPAIR_RIGHT);
      if (value.startsWith('~'))
        throw new WrongValue('begins with ~, which only shells know', 'the whole path, or one that starts at the directory of this file');
      return value;
    },
  }),
  'siwx.private_key': option<string | null>({
    takes: 'hex of an EVM key, base58 of a Solana key pair, or `std::env::NAME`',
    meaning: 'Secret key of the wallet, in place of `keypair_file`.',
    secret: true,
    optional: { text: 'none', fallback: null },
    read: (value) => {
      const right = '"std::env::NAME", or the key as hex (EVM) or base58 (Solana)';
      if (typeof value !== 'string') throw new WrongValue('is not text', right);
      if (value.trim() === '' || value.length > SECRET_MAX) throw new WrongValue('is no key', right);
      return value.trim();
    },
  }),
  'siwx.domain': option<string | null>({
    takes: 'host name, with its port where that is not the default one',
    meaning: 'Domain that the wallet signs in for: one that the router knows as its own.',
    optional: { text: 'host of `router.url`', fallback: null },
    read: (value) => {
      const right = 'a host name as browsers write it, such as router.example.com or localhost:8402';
      if (typeof value !== 'string' || value.length > 260) throw new WrongValue(`is ${show(value)}`, right);
      const fault = domainFault(value);
      if (fault !== null) throw new WrongValue(`is ${show(value)}: it ${fault}`, right);
      return value;
    },
  }),
};
