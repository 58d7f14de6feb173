import { WalletError, type Wallet } from './wallet.ts';

/** The facts of a sign-in message, except the wallet. */
export interface SignIn {
  /** Host of the gateway, with the port if it isn't the scheme's default port. */
  readonly domain: string;
  /** http:// or https://, on the same host. */
  readonly uri: string;
  /** A single line. */
  readonly statement?: string | undefined;
  readonly nonce?: string | undefined;
  /** Current time in epoch milliseconds. */
  readonly now: number;
  readonly lifetimeMs: number;
}

const KINDS = { solana: 'Solana', eip155: 'Ethereum' };

/**
 * Returns the value of a `SIGN-IN-WITH-X` header: base64 of the JSON `{message, signature}`, where the message is a
 * CAIP-122 text. Rejects with WalletError.
 */
export async function signInHeader(wallet: Wallet, signIn: SignIn): Promise<string> {
  const message = signInMessage(wallet, signIn);
  return Buffer.from(JSON.stringify({ message, signature: await wallet.sign(message) })).toString('base64');
}

function signInMessage(wallet: Wallet, { domain, uri, statement, nonce, now, lifetimeMs }: SignIn): string {
  // Each value has a line of its own. The gateway refuses a message in which a value could contain another line.
  const refuse = (what: string, right: string) => {
    throw new WalletError(`${what} is not valid in a sign-in message. ${right}`);
  };
  if (!/^[!-~]+$/.test(domain) || URL.parse(`https://${domain}/`)?.host === undefined || /[/@?#\\]/.test(domain))
    refuse(
      `The domain ${JSON.stringify(domain)}`,
      'Give the host of the gateway alone, such as gateway.example or 127.0.0.1:8402',
    );
  if (!/^https?:\/\/[!-~]+$/.test(uri) || !URL.canParse(uri))
    refuse(`The URI ${JSON.stringify(uri)}`, 'Give the address of the gateway, such as https://gateway.example');
  if (statement !== undefined && (statement === '' || /[^\x20-\x7e]/.test(statement)))
    refuse('The statement', 'Give one line of printable ASCII characters');
  if (nonce !== undefined && !/^[A-Za-z0-9]{8,}$/.test(nonce))
    refuse('The nonce', 'Give it as the gateway issued it, letters and digits');

  return [
    `${domain} wants you to sign in with your ${KINDS[wallet.namespace]} account:`,
    wallet.address,
    '',
    ...(statement === undefined ? [] : [statement, '']),
    `URI: ${uri}`,
    'Version: 1',
    `Chain ID: ${wallet.chainId}`,
    ...(nonce === undefined ? [] : [`Nonce: ${nonce}`]),
    `Issued At: ${new Date(now).toISOString()}`,
    `Expiration Time: ${new Date(now + lifetimeMs).toISOString()}`,
  ].join('\n');
}
