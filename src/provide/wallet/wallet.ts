/**
 * A key pair that signs texts, on one chain. The secret half is in no field, so that printing a wallet shows none
 * of it.
 */
export interface Wallet {
  readonly namespace: 'solana' | 'eip155';
  /** CAIP-2, such as `eip155:8453`. */
  readonly chainId: string;
  /** Base58, or hex with the EIP-55 checksum. */
  readonly address: string;
  /** CAIP-10: the chain and the address. */
  readonly accountId: string;
  /** The public key that a provider with this wallet is known by: the address in base58, or in lower-case hex. */
  readonly providerId: string;
  /** Signature of a text: Ed25519 in base58, or EIP-191 in 0x-hex. */
  sign(text: string): Promise<string>;
}

/** A wallet cannot be used. `message` says what is wrong and what would be right, and never contains a key. */
export class WalletError extends Error {
  override readonly name = 'WalletError';
}
