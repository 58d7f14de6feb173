import { createPrivateKey, sign } from 'node:crypto';
import type { Page } from 'playwright-core';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { TestWallet } from './wallets.ts';

/* Test wallets that pages find like wallet extensions. This process signs for them with real keys. */

/** The names that pages show for the test wallets. */
export const EVM_WALLET = 'Test Wallet';
export const SOLANA_WALLET = 'Test Sun Wallet';
const ICON = 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>';

interface PageWallet {
  /** The methods that the page called, in order. */
  readonly asked: string[];
  /** The signed texts. */
  readonly texts: string[];
}

/** Adds an EVM wallet (EIP-6963, EIP-1193) to the pages of a window. Call it before the first page is opened. */
export async function injectEvmWallet(page: Page, wallet: TestWallet, chainId: number): Promise<PageWallet> {
  const account = privateKeyToAccount(`0x${Buffer.from(wallet.secret).toString('hex')}`);
  const [asked, texts]: string[][] = [[], []];
  const answer = (method: string, params: readonly string[]): unknown => {
    asked!.push(method);
    if (method === 'eth_requestAccounts') return [account.address];
    if (method === 'eth_chainId') return `0x${chainId.toString(16)}`;
    if (method === 'personal_sign') {
      texts!.push(Buffer.from(params[0]!.slice(2), 'hex').toString());
      return account.signMessage({ message: { raw: params[0] as Hex } });
    }
    if (method === 'eth_signTypedData_v4') {
      const { types, ...data } = JSON.parse(params[1]!) as { types: Record<string, unknown> };
      const { EIP712Domain: _domain, ...own } = types;
      return account.signTypedData({ ...data, types: own } as never);
    }
    throw new Error(`the wallet does not have ${method}`);
  };
  await page.exposeFunction('evmWalletOfTests', answer);
  await page.addInitScript(`{
    const info = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name: '${EVM_WALLET}', icon: '${ICON}', rdns: 'test.wallet' };
    const provider = { request: ({ method, params }) => window.evmWalletOfTests(method, params ?? []) };
    const announce = () =>
      dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }));
    addEventListener('eip6963:requestProvider', announce);
    announce();
  }`);
  return { asked: asked!, texts: texts! };
}

const SIGNATURE_BYTES = 64;
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Adds a Solana wallet of the Wallet Standard to the pages of a window. Call it before the first page is opened. */
export async function injectSolanaWallet(page: Page, wallet: TestWallet): Promise<PageWallet> {
  const seed = Buffer.from(wallet.secret).subarray(0, 32);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
  const [asked, texts]: string[][] = [[], []];
  await page.exposeFunction('solanaWalletOfTests', (message: readonly number[]) => {
    asked!.push('signMessage');
    texts!.push(Buffer.from(message).toString());
    return [...sign(null, Buffer.from(message), key)];
  });
  await page.exposeFunction('solanaPayerOfTests', (bytes: readonly number[]) => {
    asked!.push('signTransaction');
    const transaction = Buffer.from(bytes);
    // The transaction has two signatures: the fee payer's, which is still missing, and the wallet's.
    const message = transaction.subarray(1 + transaction[0]! * SIGNATURE_BYTES);
    transaction.set(sign(null, message, key), 1 + SIGNATURE_BYTES);
    return [...transaction];
  });
  await page.addInitScript(`{
    const account = { address: '${wallet.address}', publicKey: new Uint8Array(32), chains: ['solana:mainnet'], features: ['solana:signMessage', 'solana:signTransaction'] };
    const wallet = {
      version: '1.0.0', name: '${SOLANA_WALLET}', icon: '${ICON}', chains: ['solana:mainnet'], accounts: [account],
      features: {
        'standard:connect': { version: '1.0.0', connect: async () => ({ accounts: [account] }) },
        'solana:signMessage': {
          version: '1.0.0',
          signMessage: async ({ message }) => [{
            signedMessage: message,
            signature: new Uint8Array(await window.solanaWalletOfTests([...message])),
          }],
        },
        'solana:signTransaction': {
          version: '1.0.0',
          supportedTransactionVersions: ['legacy', 0],
          signTransaction: async ({ transaction }) => [{
            signedTransaction: new Uint8Array(await window.solanaPayerOfTests([...transaction])),
          }],
        },
      },
    };
    const register = ({ register }) => register(wallet);
    addEventListener('wallet-standard:app-ready', ({ detail }) => register(detail));
    dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }));
  }`);
  return { asked: asked!, texts: texts! };
}
