import { api, call } from '../api/client.ts';
import type { ConnectedWallet } from './wallet.ts';

/**
 * A line of the message must not contain control characters or characters that reverse or hide text. Names of keys may
 * contain them, so they are replaced.
 */
const printable = (text: string) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');

const FAMILY_NAMES = { eip155: 'Ethereum', solana: 'Solana' } as const;

/**
 * Returns the value of a sign-in header that the wallet signed. It is valid for one request. `statement` is one line
 * that describes the request, and the wallet shows it. Rejects with ApiError and WalletError.
 */
export async function signSignIn(wallet: ConnectedWallet, statement: string): Promise<string> {
  const { message } = await call(api.GET('/api/v1/auth/nonce'));
  const text = [
    `${message.domain} wants you to sign in with your ${FAMILY_NAMES[wallet.family]} account:`,
    wallet.address,
    '',
    printable(statement),
    '',
    `URI: ${message.uri}`,
    `Version: ${message.version}`,
    // EIP-4361 uses only the number of the chain.
    `Chain ID: ${wallet.family === 'eip155' ? wallet.network.split(':')[1] : wallet.network}`,
    `Nonce: ${message.nonce}`,
    `Issued At: ${message.issued_at}`,
    `Expiration Time: ${message.expiration_time}`,
  ].join('\n');
  const signature = await wallet.signMessage(text);
  return new TextEncoder().encode(JSON.stringify({ message: text, signature })).toBase64();
}
