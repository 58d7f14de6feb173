import { recoverSigner } from './evm-signature.ts';
import { verifySolanaSignature } from './solana-signature.ts';

/** A text, and the signature to check, which an ordinary wallet should have made. */
interface WalletSignature {
  /** Ledger account of the wallet: `solana:<address>` or `eip155:<address in lower case>`. */
  readonly account: string;
  readonly text: string;
  /** Solana: 64 bytes in base58 or base64. EVM: 65 bytes in hex, with or without 0x. */
  readonly signature: string;
}

const SOLANA = 'solana:';
const EVM = 'eip155:';

/**
 * Whether the wallet of `account` signed `text`: Ed25519 over its UTF-8 bytes, or an EIP-191 personal message. False
 * for malformed values, for a contract wallet and for an account without a wallet. Invalid arguments never cause a
 * rejection.
 */
export async function verifyWalletSignature({ account, text, signature }: WalletSignature): Promise<boolean> {
  if (account.startsWith(SOLANA)) return verifySolanaSignature(account.slice(SOLANA.length), text, signature);
  if (!account.startsWith(EVM)) return false;
  const signer = await recoverSigner(text, signature);
  return signer !== null && signer.lowS && signer.address === account.slice(EVM.length);
}
