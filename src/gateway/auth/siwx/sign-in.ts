import type { ChainConfig, SignInConfig } from '#config';
import type { Caller } from '#accounts';
import type { Attempts } from '../attempts.ts';
import { createContractWallets, type ContractWallets } from './contract-wallets.ts';
import { loadRecovery, recoverSigner, verifySolanaSignature } from './wallet-signature.ts';
import { decodeSignIn, type SignedMessage } from './header.ts';
import { parseMessage, type SignInMessage, quoted, signInError, checkValidity, type SignInRules } from './message.ts';
import { createVerified } from './verified.ts';

export interface SignIn {
  /** Domains that a message may be for. If the list is empty, wallets cannot sign in. */
  readonly domains: readonly string[];
  /** The caller of a header that was verified before and is still valid. Otherwise null. */
  known(header: string): Caller | null;
  /**
   * The caller who signed. `address` is the client's. Rejects with GatewayError `unauthorized` with the reason,
   * `rate_limit_exceeded` after too many failures or too many checks of contract wallets, `service_unavailable` if the
   * chain of a contract wallet cannot be reached.
   */
  verify(header: string, address: string): Promise<Caller>;
  /** Adds chains whose contract wallets can sign in. */
  addChains(chains: SignInOptions['chains']): void;
}

export interface SignInOptions extends Pick<SignInConfig, 'domains' | 'lifetimeMsMax' | 'skewMs'> {
  readonly chains: readonly Pick<ChainConfig, 'network' | 'rpcUrl'>[];
  readonly attempts: Attempts;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Bounds of the cache of verified headers. */
  readonly verifiedMax?: number;
  readonly verifiedBytesMax?: number;
  readonly chainTimeoutMs?: number;
}

/** Says that no wallet can sign in because the gateway does not know its own name, and what can be done. */
export const NO_WALLETS =
  'No wallet can sign in at this gateway, because its operator has not told it its own address. ' +
  'The operator sets server.public_url, or [sign_in] domains. Until then use an API key';

const VERIFIED_MAX = 50_000;
const VERIFIED_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Resolves when everything for verification is loaded, so that the first sign-in does not block other requests with an
 * import. Without domains, nothing is loaded.
 */
export async function createSignIn({
  domains,
  lifetimeMsMax,
  skewMs,
  chains,
  attempts,
  now,
  elapsed,
  ...options
}: SignInOptions): Promise<SignIn> {
  const rules: SignInRules = { domains: new Set(domains), lifetimeMsMax, skewMs };
  const contracts = createContractWallets({
    chains,
    now: elapsed,
    ...(options.chainTimeoutMs ? { timeoutMs: options.chainTimeoutMs } : {}),
  });
  if (domains.length > 0) {
    await loadRecovery();
    if (chains.length > 0) await contracts.load();
  }
  const verified = createVerified({
    countMax: options.verifiedMax ?? VERIFIED_MAX,
    bytesMax: options.verifiedBytesMax ?? VERIFIED_BYTES_MAX,
  });
  const running = new Map<string, Promise<Caller>>();

  const check = async (header: string, address: string): Promise<Caller> => {
    if (domains.length === 0) throw signInError(NO_WALLETS);
    const signed = decodeSignIn(header);
    const message = parseMessage(signed.text);
    const validity = checkValidity(message, rules, now());
    const caller = await attempts.check(address, () => checkSignature(message, signed, contracts, address));
    verified.put(header, caller, validity);
    return caller;
  };

  return {
    domains,
    known: (header) => verified.get(header, now()),
    verify(header, address) {
      let result = running.get(header);
      if (!result) {
        result = check(header, address).finally(() => running.delete(header));
        running.set(header, result);
      }
      return result;
    },
    addChains: contracts.add,
  };
}

async function checkSignature(
  message: SignInMessage,
  signed: SignedMessage,
  contracts: ContractWallets,
  client: string,
): Promise<Caller> {
  const { namespace, address, network } = message;
  if (namespace === 'solana') {
    if (verifySolanaSignature(address, signed.text, signed.signature)) return callerOf(message, `solana:${address}`);
    throw signInError(`The signature is not one of ${address} over this text: Ed25519, 64 bytes in base58 or base64`);
  }
  const signer = await recoverSigner(signed.text, signed.signature);
  if (signer?.address === address) {
    if (signer.lowS) return callerOf(message, `eip155:${address}`);
    throw signInError('The signature is malleated (high s): send its low-s form (EIP-2)');
  }
  if (await contracts.verify({ network, address, ...signed, signature: with0x(signed.signature), client }))
    return callerOf(message, `${network}:${address}`);
  throw signInError(
    signer === null
      ? `The signature is not one of ${address} over this text: EIP-191, 65 bytes in hex${contractHint(contracts, network)}`
      : `The text was signed by ${signer.address}, or was changed after it was signed; it names ${address}${contractHint(contracts, network)}`,
  );
}

/**
 * Adds 0x to a hex signature, because contracts need it. Signatures of ordinary wallets are accepted with and without
 * 0x.
 */
const with0x = (signature: string) => (/^[0-9a-fA-F]+$/.test(signature) ? `0x${signature}` : signature);

function contractHint(contracts: ContractWallets, network: string): string {
  return contracts.knows(network) ? '' : `. Contract wallets cannot be checked on ${quoted(network)} here`;
}

function callerOf({ network, address, nonce }: SignInMessage, account: string): Caller {
  return { account, key: null, wallet: { caip10: `${network}:${address}`, nonce } };
}
