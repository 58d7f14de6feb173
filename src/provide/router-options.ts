import {
  bearerKey,
  domainFault,
  keypairFileOption,
  option,
  privateKeyOption,
  readUrl,
  show,
  WrongValue,
} from '#config';
import { parseChainId } from './wallet/chain-id.ts';
import { WalletError } from './wallet/wallet.ts';

const API_PATH = '/api/v1';

/** The keys of `[router]` and `[router.siwx]`: the router's address and the provider's credential. */
export const ROUTER_OPTIONS = {
  url: option({
    takes: 'an http:// or https:// URL',
    meaning: `Address of the router. It may end with the path \`${API_PATH}\`, which clients use.`,
    read: (value) => {
      const { origin, path } = readUrl(
        value,
        'the address of the router, such as https://router.example.com',
        'router.api_key',
      );
      return `${origin}${path.endsWith(API_PATH) ? path.slice(0, -API_PATH.length) : path}`;
    },
  }),
  api_key: bearerKey(
    "API key of the provider's account at the router. Where `[router.siwx]` is there too, the wallet is used.",
  ),
  'siwx.chain_id': option<string | null>({
    takes: 'CAIP-2 id of a chain, such as `eip155:8453` or `solana:mainnet`',
    meaning: "Chain of the provider's wallet.",
    optional: { text: 'required in `[router.siwx]`', fallback: null },
    read: (value) => {
      const right =
        'a CAIP-2 id: eip155:<number>, such as eip155:8453, or solana:mainnet, solana:devnet, solana:testnet or solana:<genesis hash>';
      if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, right);
      try {
        return parseChainId(value).chainId;
      } catch (error) {
        if (!(error instanceof WalletError)) throw error;
        // The message doesn't repeat the text, because it may be a key in the wrong line.
        throw new WrongValue('is not a chain that a wallet can sign in on', right);
      }
    },
  }),
  'siwx.keypair_file': keypairFileOption('Keypair file of the wallet, as the command `keygen` writes it.'),
  'siwx.private_key': privateKeyOption('Secret key of the wallet, in place of `keypair_file`.'),
  'siwx.domain': option<string | null>({
    takes: 'host name, with its port where that is not the default one',
    meaning: 'Domain that the wallet signs in for. The router must accept it as its own.',
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
