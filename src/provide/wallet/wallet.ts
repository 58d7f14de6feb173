/**
 * A key pair that signs texts, on one chain. No field contains the secret half, so printing a wallet doesn't show it.
 */
export interface Wallet {
  readonly namespace: 'solana' | 'eip155';
  /** CAIP-2 id, such as `eip155:8453`. */
  readonly chainId: string;
  /** For Solana base58, for EVM hex with the EIP-55 checksum. */
  readonly address: string;
  /** CAIP-10 id: the chain and the address. */
  readonly accountId: string;
  /** The id of a provider with this wallet: the address in base58 (Solana) or in lower-case hex (EVM). */
  readonly providerId: string;
  /** Signs a text. Returns an Ed25519 signature in base58 (Solana) or an EIP-191 signature in 0x-hex (EVM). */
  sign(text: string): Promise<string>;
}

/** A wallet can't be used. `message` says what is wrong and what would be right, and never contains a key. */
export class WalletError extends Error {
  override readonly name = 'WalletError';
}
